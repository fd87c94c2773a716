package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/verify"
	"cnmsql.co/internal/gtid"
)

// endless says the same for ever.
type endless struct {
	head, more string
	said       int
}

func (e *endless) Read(p []byte) (int, error) {
	text := e.more
	if e.said == 0 {
		text = e.head
	}
	n := copy(p, text)
	e.said += n
	return n, nil
}

func TestAnInstanceCannotTalkTheListenerToDeath(t *testing.T) {
	for name, r := range map[string]struct{ from *endless }{
		"one endless text":   {&endless{head: `{"report":{"message":"`, more: strings.Repeat("x", 4096)}},
		"endless emptiness":  {&endless{head: "   ", more: strings.Repeat(" ", 4096)}},
		"endless depth":      {&endless{head: `[`, more: strings.Repeat("[", 4096)}},
		"an endless list":    {&endless{head: `{"report":{"server":{"group":{"members":[{}`, more: ",{}"}},
		"an endless number":  {&endless{head: `{"taken":1`, more: strings.Repeat("1", 4096)}},
		"an endless mistake": {&endless{head: `}`, more: "}"}},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := newMessages(r.from).next()
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Error("it is understood")
			}
			if r.from.said > 2*maxMessage {
				t.Errorf("%d bytes were read", r.from.said)
			}
			if grew := after.TotalAlloc - before.TotalAlloc; grew > 64<<20 {
				t.Errorf("%d MiB were allocated", grew>>20)
			}
		})
	}
}

func TestMessagesAreReadOneByOneAndTheirTextsAreBounded(t *testing.T) {
	var stream bytes.Buffer
	for i := range 20 {
		text, err := json.Marshal(Snapshot{Made: int64(i), Report: core.Report{Instance: "c-1",
			Message: strings.Repeat("é", maxText)}})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&stream, "%s\n", text)
	}
	m := newMessages(&stream)
	for i := range 20 {
		s, err := m.next()
		if err != nil || s.Made != int64(i) || s.Report.Instance != "c-1" {
			t.Fatalf("message %d: %v, %v", i, s.Made, err)
		}
		if n := len(s.Report.Message); n > maxText+len("…") || !strings.HasSuffix(s.Report.Message, "…") {
			t.Errorf("its text has %d bytes", n)
		}
	}
	if _, err := m.next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last: %v", err)
	}
}

func TestWhatAnInstanceSaysIsPrintable(t *testing.T) {
	const says, shown = "a\r\x1b[2K\u2028b", "a  [2K b"
	text, err := json.Marshal(Snapshot{Report: core.Report{Instance: "c-1", Message: says}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := newMessages(bytes.NewReader(text)).next()
	if err != nil || s.Report.Message != shown {
		t.Errorf("a report: %q, %v", s.Report.Message, err)
	}
	l := listener{from: newMessages(bytes.NewReader(text))}
	if s, err = l.next(); err != nil || s.Report.Message != shown {
		t.Errorf("a report of a stream: %q, %v", s.Report.Message, err)
	}
	text, err = json.Marshal(CheckReport{Error: says, Table: says, Damaged: []CheckFinding{{says, says}},
		Sums: []verify.Sum{{Table: says}}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := checked(t, text)
	if err != nil || got.Error != shown || got.Table != shown || got.Damaged[0] != (CheckFinding{shown, shown}) {
		t.Errorf("a report of tables: %+v, %v", got, err)
	}
	if got.Sums[0].Table != says {
		t.Errorf("the sum of %q is that of %q", says, got.Sums[0].Table)
	}
}

func TestATooLongAnswerEndsAnOrderAndAStream(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.CopyN(w, &endless{head: `{"report":{"message":"`, more: strings.Repeat("x", 4096)}, 3*maxMessage)
	}))
	defer srv.Close()
	c := NewClient(strings.TrimPrefix(srv.URL, "https://"),
		srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone())
	defer c.Close()
	if _, err := c.Order(t.Context(), Demote{Epoch: 1}); !errors.Is(err, errTooLong) {
		t.Errorf("an order: %v", err)
	}
	if _, err := c.Check(t.Context(), CheckOrder{ID: "1"}); !errors.Is(err, errTooLong) {
		t.Errorf("a check of tables: %v", err)
	}
	if err := c.Watch(t.Context(), func(Snapshot) { t.Error("a snapshot was heard") }); !errors.Is(err, errTooLong) {
		t.Errorf("a stream: %v", err)
	}
}

func TestWhatAnInstanceSaysInARefusalIsShort(t *testing.T) {
	long := strings.Repeat("x", 60<<10)
	refusal, _ := json.Marshal(Refusal{Reason: core.Reason(long), Message: long})
	for name, body := range map[string][]byte{"a refusal": refusal, "any text": []byte(long)} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusConflict)
				_, _ = w.Write(body)
			}))
			defer srv.Close()
			c := NewClient(strings.TrimPrefix(srv.URL, "https://"),
				srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone())
			defer c.Close()
			_, err := c.CheckReport(t.Context())
			if err == nil || len(err.Error()) > 3*maxText || !strings.Contains(err.Error(), "xxx") {
				t.Errorf("the error has %d bytes", len(fmt.Sprint(err)))
			}
		})
	}
}

// checked is what a client makes of an instance's answer to a check of tables.
func checked(t *testing.T, answer []byte) (CheckReport, error) {
	t.Helper()
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_,
			_ = w.Write(answer)
	}))
	defer srv.Close()
	c := NewClient(strings.TrimPrefix(srv.URL, "https://"),
		srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone())
	defer c.Close()
	return c.CheckReport(t.Context())
}

func TestAReportOfTablesHoldsNoMoreThanAStatusCanTake(t *testing.T) {
	long, listed := strings.Repeat("é", maxText), strings.Repeat("é", maxListedText)
	sums := func(n int) []verify.Sum {
		return slices.Repeat([]verify.Sum{{Table: listed, Sum: listed, Rows: 7}}, n)
	}
	executed := "8f1c0000-0000-0000-0000-000000000000:1" + strings.Repeat(":7", 3*maxText)
	for name, c := range map[string]struct {
		said CheckReport
		no   string
	}{
		"as much as it may": {said: CheckReport{Error: long, Table: long,
			Damaged: slices.Repeat([]CheckFinding{{listed, listed}}, MaxListed),
			Sums:    sums(MaxListed), Sample: &verify.Sample{Executed: executed, Sums: sums(MaxListed)}}},
		"too much damage": {CheckReport{Damaged: make([]CheckFinding, MaxListed+1)},
			"101 damaged tables; 100 at most"},
		"too many sums": {CheckReport{Sums: sums(MaxListed + 1)}, "101 sums; 100 at most"},
		"too large sample": {CheckReport{Sample: &verify.Sample{Sums: sums(MaxListed + 1)}},
			"101 sums in a sample; 100 at most"},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := json.Marshal(c.said)
			if err != nil {
				t.Fatal(err)
			}
			got, err := checked(t, answer)
			if c.no != "" {
				if err == nil || !strings.Contains(err.Error(), c.no) {
					t.Errorf("got %v, want %q", err, c.no)
				}
				return
			}
			if err != nil || len(got.Damaged) != MaxListed || len(got.Sums) != MaxListed ||
				len(got.Sample.Sums) != MaxListed || got.Sums[3].Rows != 7 {
				t.Fatalf("%d, %d: %v", len(got.Damaged), len(got.Sums), err)
			}
			for limit, texts := range map[int][]string{
				maxText: {got.Error, got.Table, got.Sample.Executed},
				maxListedText: {got.Damaged[9].Table, got.Damaged[9].Message, got.Sums[9].Table, got.Sums[9].Sum,
					got.Sample.Sums[9].Table},
			} {
				for i, text := range texts {
					if len(text) > limit+len("…") || !strings.HasSuffix(text, "…") {
						t.Errorf("text %d has %d bytes, of %d", i, len(text), limit)
					}
				}
			}
		})
	}
}

func TestAReportOfTablesIsReadLikeEveryOtherMessage(t *testing.T) {
	_, err := checked(t, []byte(`{"damaged":[{}`+strings.Repeat(",{}", maxNodes)+`]}`))
	if err == nil || !strings.Contains(err.Error(), "lists and objects") {
		t.Errorf("many objects: %v", err)
	}
	if _, err = checked(t, []byte(`{"executed":"no set"}`)); err == nil {
		t.Error("a set that cannot be read is read")
	}
	// The positions themselves may be long: nothing is cut off them.
	whole := gtid.MustParse("8f1c0000-0000-0000-0000-000000000000:1" + oddNumbers(maxText))
	answer, _ := json.Marshal(CheckReport{Executed: whole})
	if got, err := checked(t, answer); err != nil || !got.Executed.Equal(whole) {
		t.Errorf("a long set: %v", err)
	}
}

func oddNumbers(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, ":%d", 2*i+3)
	}
	return out.String()
}

// FuzzMessages: whatever an instance says, whoever listens goes on, in bounded memory.
func FuzzMessages(f *testing.F) {
	whole, _ := json.Marshal(Snapshot{Taken: 1, Made: 2, Report: core.Report{Instance: "c-1", Server: &core.Server{}}})
	for _, seed := range []string{string(whole), string(whole) + "\n" + string(whole), "{", "null", `{"report":null}`,
		`{"report":{"server":{"executed":"x"}}}`,
		`[[[[`, `{"report":{"message":"\ud800"}}`, `{"made":1e99}`, "\x00",
		`{"report":{"server":{"executed":"11111111-1111-1111-1111-111111111111:1-9223372036854775807"}}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		m := newMessages(bytes.NewReader(said))
		for range len(said) + 1 {
			s, err := m.next()
			if err != nil {
				return
			}
			if len(s.Report.Message) > maxText+len("…") || len(s.Report.Instance) > maxText+len("…") {
				t.Fatal("a text is too long")
			}
		}
		t.Fatal("it never ends")
	})
}

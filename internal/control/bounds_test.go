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
	"strings"
	"testing"

	"cnmsql.co/internal/core"
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
		text, err := json.Marshal(Snapshot{Made: int64(i), Report: core.Report{Instance: "c-1", Message: strings.Repeat("é", maxText)}})
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

func TestATooLongAnswerEndsAnOrderAndAStream(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.CopyN(w, &endless{head: `{"report":{"message":"`, more: strings.Repeat("x", 4096)}, 3*maxMessage)
	}))
	defer srv.Close()
	c := NewClient(strings.TrimPrefix(srv.URL, "https://"), srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone())
	defer c.Close()
	if _, err := c.Order(t.Context(), VerbDemote, Order{Epoch: 1}); !errors.Is(err, errTooLong) {
		t.Errorf("an order: %v", err)
	}
	if err := c.Watch(t.Context(), func(Snapshot) { t.Error("a snapshot was heard") }); !errors.Is(err, errTooLong) {
		t.Errorf("a stream: %v", err)
	}
}

// FuzzMessages: whatever an instance says, whoever listens goes on, in bounded memory.
func FuzzMessages(f *testing.F) {
	whole, _ := json.Marshal(Snapshot{Taken: 1, Made: 2, Report: core.Report{Instance: "c-1", Server: &core.Server{}}})
	for _, seed := range []string{string(whole), string(whole) + "\n" + string(whole), "{", "null", `{"report":null}`, `{"report":{"server":{"executed":"x"}}}`,
		`[[[[`, `{"report":{"message":"\ud800"}}`, `{"made":1e99}`, "\x00", `{"report":{"server":{"executed":"11111111-1111-1111-1111-111111111111:1-9223372036854775807"}}}`} {
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

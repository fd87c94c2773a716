package control

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// talker is an instance that says these snapshots, and then no more.
type talker struct {
	Instance
	says []Snapshot
}

func (in talker) Watch(_ context.Context, send func(Snapshot) error) error {
	for _, s := range in.says {
		if err := send(s); err != nil {
			return err
		}
	}
	return nil
}

func says(made int64, message string) Snapshot {
	return Snapshot{Taken: made - 1, Made: made, Asked: 1,
		Report: core.Report{Instance: "c-1", Message: message, Server: &core.Server{UUID: "u"}}}
}

// stream serves a handler, and returns a client of it.
func stream(t *testing.T, h http.Handler) (*Client, *httptest.Server) {
	t.Helper()
	srv := httptest.NewTLSServer(h)
	t.Cleanup(srv.Close)
	trust := srv.Client().Transport.(*http.Transport).TLSClientConfig
	c := NewClient(strings.TrimPrefix(srv.URL, "https://"), trust.Clone())
	t.Cleanup(c.Close)
	return c, srv
}

func TestAStreamTellsAReportOnceAndItsListenerHearsItEachTime(t *testing.T) {
	in := talker{says: []Snapshot{says(2, "one"), says(3, "one"), says(4, "two"), says(5, "two"), says(6, "one")}}
	c, srv := stream(t, status(in))
	var heard []Snapshot
	if err := c.Watch(t.Context(), func(s Snapshot) { heard = append(heard, s) }); err == nil {
		t.Fatal("the stream has not ended")
	}
	if len(heard) != len(in.says) {
		t.Fatalf("%d of %d snapshots were heard", len(heard), len(in.says))
	}
	for i, s := range heard {
		want := in.says[i]
		same := s.Taken == want.Taken && s.Made == want.Made && s.Asked == want.Asked
		if !same || s.Report.Message != want.Report.Message || s.Report.Server == nil || s.Report.Server.UUID != "u" {
			t.Errorf("%d: %+v was heard of %+v", i, s, want)
		}
	}
	var told []bool
	for _, line := range linesOf(t, srv, "?watch=true&brief=true") {
		told = append(told, strings.Contains(line, `"report"`))
	}
	if got := fmt.Sprint(told); got != "[true false true false true]" {
		t.Errorf("reports were told so: %s", got)
	}
}

// An operator of before knows nothing of what may be left out.
func TestWhoDoesNotAskForBriefMessagesHearsEveryReport(t *testing.T) {
	_, srv := stream(t, status(talker{says: []Snapshot{says(2, "one"), says(3, "one")}}))
	lines := linesOf(t, srv, "?watch=true")
	if len(lines) != 2 {
		t.Fatalf("%d messages", len(lines))
	}
	for i, line := range lines {
		var s Snapshot // as it was read before
		err := json.Unmarshal([]byte(line), &s)
		if err != nil || s.Made != int64(i+2) || s.Report.Message != "one" || strings.Contains(line, "same") {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// A manager of before sends every report, whatever it is asked.
func TestAManagerOfBeforeIsHeard(t *testing.T) {
	c, _ := stream(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for i := range 3 {
			_ = json.NewEncoder(w).Encode(says(int64(i+2), "one"))
		}
	}))
	n := 0
	_ = c.Watch(t.Context(), func(s Snapshot) {
		if n++; s.Report.Message != "one" || s.Made != int64(n+1) {
			t.Errorf("%+v", s)
		}
	})
	if n != 3 {
		t.Errorf("%d snapshots were heard", n)
	}
}

func TestTheFirstMessageCannotBeTheSameAsTheOneBefore(t *testing.T) {
	l := listener{from: newMessages(strings.NewReader(`{"made":1,"same":true}`))}
	if s, err := l.next(); err == nil {
		t.Errorf("%+v was heard", s)
	}
}

func linesOf(t *testing.T, srv *httptest.Server, query string) (lines []string) {
	t.Helper()
	resp, err := srv.Client().Get(srv.URL + PathStatus + query)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	from := bufio.NewScanner(resp.Body)
	for from.Scan() {
		lines = append(lines, from.Text())
	}
	if err := from.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

// BenchmarkAMessage is what it costs to listen to an instance each second.
func BenchmarkAMessage(b *testing.B) {
	const source, other = "8f1c0000-0000-0000-0000-000000000000", "8f1c0000-0000-0000-0000-000000000001"
	executed := gtid.MustParse(source + ":1-4711," + other + ":1-12")
	said := says(2, "")
	said.Report.Server = &core.Server{UUID: other, Executed: executed, SuperReadOnly: true,
		Replication: &core.Replication{SourceHost: "c-2.ns.svc", SourceUUID: source,
			IORunning: true, SQLRunning: true, Retrieved: executed}}
	whole, _ := json.Marshal(said)
	const same = `{"taken":1,"made":2,"asked":1,"same":true}`
	for name, text := range map[string]string{"whole": string(whole), "same": same} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			l := listener{from: newMessages(strings.NewReader(string(whole) + strings.Repeat("\n"+text, b.N)))}
			for range b.N {
				if _, err := l.next(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

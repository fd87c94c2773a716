package main

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"
)

func TestTheWritersLogIsProgressAndThenItsLastWord(t *testing.T) {
	log := "06:29:16.423  acknowledged 12 (+12)  unknown 0  refused 0  unconnected 0  last ack 1.0 ms ago  " +
		`longest gap 3.0 ms
06:29:17.423  acknowledged 655 (+643)  unknown 4  refused 0  unconnected 0  last ack 1.0 ms ago  longest gap 3.0 ms
{
  "acknowledged": 700,
  "longestGap": {"ms": 300.5, "open": false},
  "errors": [{"what": "refused", "text": "acknowledged 1 (+1)", "count": 1}],
  "verified": true,
  "rows": {"found": 699, "lost": 1, "extra": 0}
}
`
	l := &load{news: make(chan progress, 8), done: make(chan struct{})}
	l.read(io.NopCloser(strings.NewReader(log)))
	if len(l.news) != 2 || <-l.news != (progress{12, 12}) || <-l.news != (progress{655, 643}) {
		t.Error("the progress is not what it said")
	}
	var r result
	if err := json.Unmarshal([]byte(l.text.String()), &r); err != nil {
		t.Fatal(err)
	}
	if r.Acknowledged != 700 || r.outage() != 300500*time.Microsecond || !r.Verified || r.Rows.Lost != 1 {
		t.Errorf("%+v", r)
	}
	if _, err := l.next(t.Context()); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("after the end: %v", err)
	}
}

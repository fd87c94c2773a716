package store

import (
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// pieces are a body, each of which takes this side so long.
type pieces struct {
	left int
	each time.Duration
}

func (p *pieces) Read([]byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	p.left--
	time.Sleep(p.each)
	return 1, nil
}

func TestHowLongAStoreMayTakeAfterABody(t *testing.T) {
	const silence = 30 * time.Second
	for name, c := range map[string]struct {
		pieces      int
		line, reads time.Duration // for a piece
		want        time.Duration
	}{
		"none":                              {0, 0, 0, silence},
		"one that went at once":             {10, 0, 0, silence},
		"one that went in less":             {9, time.Second, 0, silence},
		"one that the line took slowly":     {10, 5 * time.Second, 0, 150 * time.Second},
		"one that it took very slowly":      {100, 20 * time.Second, 0, mostSilences * silence},
		"one that this side wrote slowly":   {10, 0, time.Minute, silence},
		"one that stops before it was sent": {3, silence + time.Second, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stalled, told := make(chan time.Time, 9), 0
				w := newWatch(silence, func() { stalled <- time.Now() })
				w.allowed = func() { told++ }
				body := &requestBody{ReadCloser: io.NopCloser(&pieces{c.pieces, c.reads}), watch: w}
				for err := error(nil); err == nil && len(stalled) == 0; {
					if _, err = body.Read(make([]byte, 1)); err == nil {
						time.Sleep(c.line)
					}
				}
				ended := time.Now()
				if got := max((<-stalled).Sub(ended), 0); got != c.want {
					t.Errorf("after its end a store has %s, want %s", got, c.want)
				}
				if more := int((c.want - 1) / silence); told != more {
					t.Errorf("who waits was told %d times, want %d", told, more)
				}
			})
		})
	}
}

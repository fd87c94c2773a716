package instance

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
)

// ringer wakes the operator.
type ringer struct {
	kube Kubernetes
	me   string
	log  *slog.Logger
	by   rung
}

// rung is what a ringer asks of its manager.
type rung interface {
	// snapshot is the report, and what is closed when it changes.
	snapshot(now time.Time) (control.Snapshot, <-chan struct{})
}

func newRinger(m *manager) *ringer {
	return &ringer{kube: m.kube, me: m.opt.Instance, log: m.log, by: m}
}

// keepRinging wakes the operator by an annotation of the own Pod whenever the group
// is seen to change. It is a doorbell: what is true the operator asks all members.
func (r *ringer) keepRinging(ctx context.Context) {
	last := ""
	for {
		var again <-chan time.Time
		s, changed := r.by.snapshot(time.Now())
		if now := doorbellState(s.Report); now != "" && now != last {
			if err := r.kube.RingDoorbell(ctx, r.me, now); err != nil && ctx.Err() == nil {
				r.log.Warn("cannot ask the operator to look (by an annotation of this Pod); the manager tries again",
					"error", err)
				again = time.After(time.Second)
			} else {
				last = now
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-again:
		}
	}
}

// doorbellState differs whenever the group does; "" where there is none.
func doorbellState(r core.Report) string {
	if !r.Server.HasView() {
		return ""
	}
	v := *r.Server.Group
	sum := sha256.Sum256([]byte(fmt.Sprint(v.State, v.Role, v.ViewID, v.Members)))
	return strconv.FormatUint(uint64(sum[0])<<24|uint64(sum[1])<<16|uint64(sum[2])<<8|uint64(sum[3]), 16)
}

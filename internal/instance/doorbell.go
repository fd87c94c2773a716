package instance

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"
	"time"

	"cnmsql.co/internal/core"
)

// keepRinging wakes the operator by an annotation of the own Pod whenever the group
// is seen to change. It is a doorbell: what is true the operator asks all members.
func (m *manager) keepRinging(ctx context.Context) {
	last := ""
	for {
		var again <-chan time.Time
		s, changed := m.snapshot(time.Now())
		if now := chime(s.Report); now != "" && now != last {
			if err := m.kube.RingDoorbell(ctx, m.opt.Instance, now); err != nil && ctx.Err() == nil {
				m.log.Warn("ringing the operator's doorbell; it is tried again", "error", err)
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

// chime differs whenever the group does; "" where there is none.
func chime(r core.Report) string {
	if r.Server == nil || r.Server.Group == nil {
		return ""
	}
	v := *r.Server.Group
	sum := sha256.Sum256([]byte(fmt.Sprint(v.State, v.Role, v.ViewID, v.Members)))
	return strconv.FormatUint(uint64(sum[0])<<24|uint64(sum[1])<<16|uint64(sum[2])<<8|uint64(sum[3]), 16)
}

package agent

import (
	"fmt"
	"time"

	"cnmsql.co/internal/core"
)

// sourceRetry is the pause before a primary is pointed anew at an external server that it does not reach. mysqld
// itself tries each second, with what it was told.
const sourceRetry = 15 * time.Second

// followServer keeps a primary replicating from the external server that its promotion names. What is the matter
// with that is told, and is no reason to promote another instance, which would fare no better.
func (f *Facts) followServer(p *core.Promotion) (Decision, bool) {
	r := f.Server.Replication
	actions := append(append(giveAcks(f), applying(f)...), acceptClients(f)...)
	attached := r != nil && r.SourceHost == f.SourceHost
	switch {
	case f.SourceHost == "":
		return tell(core.Running, core.InstanceSourceUnknown, "is not told yet how to reach "+p.Follows+
			", of spec.externalClusters", actions...)
	case r != nil && r.SQLError != "" && !r.SQLRunning:
		return tell(core.Running, core.InstanceSourceRefused, fmt.Sprintf("cannot apply what %s sends: %s", p.Follows,
			r.SQLError), actions...)
	case attached && r.IORunning, attached && f.receiving() && r.IOError == "":
		return tell(core.Running, "", "", actions...)
	case attached && r.IOError != "":
		if f.Now.Sub(f.ReceiveFailedAt) >= sourceRetry { // what tells how to reach it may be another by now
			actions = append(actions, FollowServer{p.Follows})
		}
		return tell(core.Running, core.InstanceSourceUnreached, fmt.Sprintf("does not receive from %s: %s", p.Follows,
			r.IOError), actions...)
	}
	return tell(core.Running, "", "", append(actions, FollowServer{p.Follows})...)
}

// Following names the external server that the Cluster's primary follows, or is to; "" where it takes writes, and
// where nothing is known of the Cluster.
func (c *Cluster) Following() string {
	if c == nil || c.Promotion == nil {
		return ""
	}
	return c.Promotion.Follows
}

// FollowedBy names the external server that an instance follows as the primary, or that the primary is to follow, for
// one that serves as the primary since the epoch serves, 0 for never, and follows then that server, "" for none.
func (c *Cluster) FollowedBy(serves int64, follows string) string {
	if serves != 0 {
		return follows
	}
	return c.Following()
}

// isFollowing reports whether the Cluster's primary follows an external server.
func (f *Facts) isFollowing() bool { return f.promotion().FollowsServer() }

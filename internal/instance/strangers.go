package instance

import (
	"context"
	"slices"
	"strings"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// strangers are servers that are no instances of the Cluster and acknowledge commits of this one: mysqld counts
// whoever receives with semi-synchronous replication switched on. Nobody elects them. polling is held.
type strangers struct {
	m     *manager
	looks agent.AckLooks
	// cut are those that were cut off lately, as user@host, and when that was last.
	cut map[string]time.Time
}

// cutOff ends the connections of strangers, where there may be one that was not there at the last look, and returns
// those that were cut off lately. It asks on another connection than that by which mysqld is asked how it is.
func (g *strangers) cutOff(ctx context.Context, of core.SemiSync) string {
	now := time.Now()
	if g.looks.IsTime(of, now) {
		g.note(of, now, g.look(ctx, now))
	}
	return g.lately(now)
}

// note has the next look be when it is due. Of looks that fail one after the other the first is told, and the end.
func (g *strangers) note(of core.SemiSync, now time.Time, failed error) {
	failing := g.looks.Fails()
	switch {
	case failed != nil:
		g.looks = g.looks.Failed(of, now)
		if !failing {
			g.m.log.Warn("it is not known which servers acknowledge commits; the manager asks again", "error", failed)
		}
		return
	case failing:
		g.m.log.Info("it is known again which servers acknowledge commits")
	}
	g.looks = g.looks.After(of, now)
}

func (g *strangers) look(ctx context.Context, now time.Time) error {
	account, err := g.m.opt.Dirs.replicationUser()
	if err != nil {
		return err
	}
	found, err := g.m.metrics.ForeignReplicas(ctx, account)
	if err != nil {
		return err
	}
	for _, one := range found {
		g.m.log.Warn("ends the connection of a server that is no instance of this Cluster, and acknowledges its "+
			"commits", "user", one.User, "host", one.Host)
		g.cut[one.User+"@"+one.Host] = now
	}
	return g.m.metrics.Kill(ctx, found)
}

// lately forgets those that have not come back for long.
func (g *strangers) lately(now time.Time) string {
	var names []string
	for name, at := range g.cut {
		if now.Sub(at) > agent.StrangerStays {
			delete(g.cut, name)
			continue
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

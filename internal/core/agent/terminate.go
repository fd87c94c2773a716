package agent

import (
	"time"

	"cnmsql.co/internal/core"
)

// terminate stops mysqld when the Pod is being stopped. A primary hands over first.
func terminate(f *Facts) (Decision, bool) {
	switch {
	case f.TerminatingSince.IsZero():
		return pass()
	case f.Activity == Stopping:
		return pass()
	case f.Activity != NoActivity:
		return tell(core.Stopped, core.InstanceTerminating, "the Pod is being stopped", Abort{})
	case !f.Mysqld.Up:
		return leave(f)
	case f.handsOver():
		return pass()
	}
	return tell(core.Running, core.InstanceTerminating, "the Pod is being stopped",
		StopServer{Why: "the Pod is being stopped"})
}

// leave ends the manager after mysqld has ended. Where there are other instances, the Pod's address
// stays for a moment before that, so that who is still sent to it is refused at once: nobody
// answers at an address that is gone, and a client waits there for seconds.
func leave(f *Facts) (Decision, bool) {
	c := f.Cluster
	if c == nil || c.Deleting || c.Instances < 2 || f.Now.Sub(f.Mysqld.DownSince) >= AddressStays {
		return tell(core.Stopped, core.InstanceTerminating, "the Pod is being stopped", Exit{})
	}
	return tell(core.Stopped, core.InstanceTerminating, "mysqld is stopped; the Pod's address stays until the "+
		"Services have forgotten it")
}

// handsOver reports whether another instance is to take over before this one stops. Until then it
// serves, at first its clients and then the transactions its successor lacks.
func (f *Facts) handsOver() bool {
	c := f.Cluster
	if c == nil || c.Deleting || c.Instances < 2 || f.isAlone() || f.Data != core.DataPopulated || !f.Mysqld.Answers {
		return false
	}
	p := f.promotion()
	if p == nil || p.Instance != f.Me && c.CurrentPrimary != f.Me {
		return false
	}
	return f.Now.Sub(f.TerminatingSince) < f.switchoverLimit()
}

// isAlone reports whether no other instance exists yet, however many are wished for.
func (f *Facts) isAlone() bool {
	return len(f.Cluster.Names) == 1 && f.Cluster.Names[0] == f.Me
}

// switchoverLimit is short until the operator shows that it is at work.
func (f *Facts) switchoverLimit() time.Duration {
	p := f.promotion()
	limit := f.Cluster.MaxStop / 2
	if p.Instance != f.Me || f.NoWritesBelow > p.Epoch || f.Cluster.SwitchoverFrom == f.Me {
		return limit
	}
	return min(limit, SwitchoverWait)
}

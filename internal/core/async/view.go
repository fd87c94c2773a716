package async

import "cnmsql.co/internal/core"

func holderOf(o *core.Observation) *core.Instance {
	p := o.Cluster.Status.Promotion
	if p == nil {
		return nil
	}
	return o.Instance(p.Instance)
}

// serving returns the report of an instance whose mysqld answers and holds the
// cluster's data.
func serving(in *core.Instance) (core.Report, bool) {
	return in.Serving()
}

// follows reports whether the instance's channel points at the named source.
func follows(r core.Report, source string) bool {
	return r.Server != nil && r.Server.Replication != nil && core.IsHostOf(r.Server.Replication.SourceHost, source)
}

// receives reports whether the instance receives from a source, whichever it is.
func receives(r core.Report) bool {
	return r.Server.Replication != nil && r.Server.Replication.IORunning
}

// streams reports whether the instance receives and applies from the named source.
func streams(r core.Report, source string) bool {
	return follows(r, source) && r.Server.Replication.IORunning && r.Server.Replication.SQLRunning
}

// writable reports whether the instance accepts writes in the promotion's epoch, and goes on to.
func writable(r core.Report, p *core.Promotion) bool {
	return p.IsUsedBy(r.Instance, r) && r.State == core.Running && r.Reason != core.InstanceIsolated
}

// others calls each with every instance but the named one.
func others(o *core.Observation, name string, each func(*core.Instance)) {
	for i := range o.Instances {
		if o.Instances[i].Name != name {
			each(&o.Instances[i])
		}
	}
}

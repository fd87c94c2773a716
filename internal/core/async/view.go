package async

import (
	"strings"

	"cnmsql.co/internal/core"
)

func holderOf(o *core.Observation) *core.Instance {
	p := o.Cluster.Status.Promotion
	if p == nil {
		return nil
	}
	return o.Instance(p.Instance)
}

// exists: a Pod or a volume of the instance is known to be there.
func exists(in *core.Instance) bool {
	pod, _ := in.Pod.Get()
	vol, _ := in.Volume.Get()
	return pod.Exists || vol.Exists
}

// isLeaving: all that is left of the instance is being deleted.
func isLeaving(in *core.Instance) bool {
	pod, _ := in.Pod.Get()
	vol, _ := in.Volume.Get()
	return (!pod.Exists || pod.Terminating) && (!vol.Exists || vol.Deleting)
}

// isGone: it is known that neither Pod nor volume are left.
func isGone(in *core.Instance) bool {
	return in.Pod.Known() && in.Volume.Known() && !exists(in)
}

// saysEmpty: the instance's own manager says that it has none of the cluster's data.
func saysEmpty(in *core.Instance) bool {
	r, known := in.Report.Get()
	return known && (r.Data == core.DataEmpty || r.Data == core.DataScratch)
}

// serving returns the report of an instance whose mysqld answers and holds the
// cluster's data.
func serving(in *core.Instance) (core.Report, bool) {
	r, ok := in.Report.Get()
	return r, ok && r.State == core.Running && r.Data == core.DataPopulated && r.Server != nil
}

// follows: the instance's channel points at the named source.
func follows(r core.Report, source string) bool {
	return r.Server != nil && r.Server.Replication != nil && isHostOf(r.Server.Replication.SourceHost, source)
}

// receives: the instance receives from a source, whichever it is.
func receives(r core.Report) bool {
	return r.Server.Replication != nil && r.Server.Replication.IORunning
}

// streams: the instance receives and applies from the named source.
func streams(r core.Report, source string) bool {
	return follows(r, source) && r.Server.Replication.IORunning && r.Server.Replication.SQLRunning
}

// isHostOf: host is the instance's DNS name (or the bare name).
func isHostOf(host, instance string) bool {
	return host == instance || strings.HasPrefix(host, instance+".")
}

// writable: the instance accepts writes in the promotion's epoch, and goes on to.
func writable(r core.Report, p *core.Promotion) bool {
	return p != nil && r.State == core.Running && r.WritableEpoch == p.Epoch && r.Instance == p.Instance && r.Reason != core.Isolated
}

// others calls each with every instance but the named one.
func others(o *core.Observation, name string, each func(*core.Instance)) {
	for i := range o.Instances {
		if o.Instances[i].Name != name {
			each(&o.Instances[i])
		}
	}
}

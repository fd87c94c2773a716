package draft

import (
	"slices"
	"strings"

	"cnmsql.co/internal/core"
)

// TellTokenRefused names the instances whose managers the API server does not know any more, as they are to be
// restarted: the primary last. It is one notice of all: they are found out one after the other.
func (d *Draft) TellTokenRefused() {
	var names []string
	for i := range d.Instances {
		if in := &d.Instances[i]; in.Report.Is(func(r core.Report) bool { return r.TokenRefused }) {
			names = append(names, in.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	if primary := d.Status.CurrentPrimary; slices.Contains(names, primary) {
		names = append(Without(names, primary), primary)
	}
	whose, who, become := "token of "+names[0], "its manager hears", "it cannot"
	and := "Delete its Pod, and wait until it is ready again: kubectl delete pod " + names[0]
	if len(names) > 1 {
		whose, who, become = "tokens of "+strings.Join(names, ", "), "their managers hear", "none of them can"
		and = "Delete their Pods in this order, each when the one before is ready again: kubectl delete pod " +
			strings.Join(names, ", kubectl delete pod ")
	}
	means := who + " of no change of the Cluster"
	if !d.Cluster.Topology.ElectsByItself() { // else nobody needs Kubernetes for that
		means += ", and " + become + " become primary"
	}
	d.Remark(core.ReasonTokenRefused, "", "the API server refuses the "+whose+" (401 Unauthorized), as it does when "+
		"a ServiceAccount was deleted and made again: "+means+". "+and)
}

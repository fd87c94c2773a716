package draft

import "cnmsql.co/internal/core"

// TellParameters tells of instances of which mysqld refuses what the spec says, and runs with what it served with
// before.
func (d *Draft) TellParameters() {
	for i := range d.Instances {
		in := &d.Instances[i]
		if r, known := in.Latest.Get(); known && r.ConfigRefused != "" {
			d.Announce(true, core.RefusalParameters, in.Name, in.Name+" goes on with the parameters of before: "+
				r.ConfigRefused)
		}
	}
}

// HasTried reports whether an instance has been restarted for the spec as it is, and its mysqld refuses that: nobody
// else is restarted for it then.
func (d *Draft) HasTried(in *core.Instance) bool {
	return in.Latest.Is(func(r core.Report) bool { return r.ConfigRefused != "" }) &&
		in.Pod.Is(func(pod core.Pod) bool { return pod.Exists && pod.Current })
}

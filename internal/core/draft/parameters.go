package draft

import (
	"slices"
	"strings"

	"cnmsql.co/internal/core"
)

// TellParameters tells of instances of which mysqld refuses what the spec says, and runs with what it served with
// before. Those that say the same are told together.
func (d *Draft) TellParameters() {
	var whys []string
	names := map[string][]string{}
	for i := range d.Instances {
		in := &d.Instances[i]
		r, known := in.Latest.Get()
		if !known || r.ConfigRefused == "" {
			continue
		}
		if !slices.Contains(whys, r.ConfigRefused) {
			whys = append(whys, r.ConfigRefused)
		}
		names[r.ConfigRefused] = append(names[r.ConfigRefused], in.Name)
	}
	for _, why := range whys {
		who, goes := names[why], " goes"
		if len(who) > 1 {
			goes = " go"
		}
		d.Announce(true, core.RefusalParameters, strings.Join(who, ","), strings.Join(who, ", ")+goes+
			" on with the parameters of before: "+why)
	}
}

// HasTried reports whether an instance has been restarted for the spec as it is, and its mysqld refuses that: nobody
// else is restarted for it then.
func (d *Draft) HasTried(in *core.Instance) bool {
	return in.Latest.Is(func(r core.Report) bool { return r.ConfigRefused != "" }) &&
		in.Pod.Is(func(pod core.Pod) bool { return pod.Exists && pod.Current })
}

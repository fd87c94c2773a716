package draft

import (
	"strings"

	"cnmsql.co/internal/core"
)

// TellFull tells of a primary whose commits hang because its volume is full, in its own words.
func (d *Draft) TellFull(primary, says string) {
	d.Announce(true, core.ReasonFull, primary, "commits on "+primary+" hang: "+says)
}

// TellNearlyFull names the instances of whose volumes little is free, by what they said last: one that
// is not heard for a moment is no news. It is an event once, for the volumes of a cluster fill alike.
func (d *Draft) TellNearlyFull() {
	var low []string
	for i := range d.Instances {
		in := &d.Instances[i]
		if in.Latest.Is(func(r core.Report) bool { return r.Room != nil && r.Room.Low }) {
			low = append(low, in.Name)
		}
	}
	if len(low) == 0 {
		return
	}
	d.Remark(core.ReasonNearlyFull, "", "less than 10 % is free on the volume of "+strings.Join(low, ", ")+
		": raise spec.storage.size, or free space; commits hang when the primary's is full")
}

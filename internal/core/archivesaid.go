package core

// Archive is what the instance says that archives; nil when none does. A primary that was cut off, and is back
// before it has learnt that it was replaced, says how its own epoch is archived: that of the newest one counts.
func (o Observation) Archive() (a *Archive) {
	newest := int64(0)
	for i := range o.Instances {
		r, known := o.Instances[i].Report.Get()
		if known && r.WritableEpoch > newest {
			newest, a = r.WritableEpoch, r.Archive
		}
	}
	return a
}

package draft

// IsStopping reports whether an instance is being stopped, by the word of its Pod or of its
// manager; of what is not known, nothing is. One that is not there is gone.
func (d *Draft) IsStopping(name string) bool {
	in := d.Observation.Instance(name)
	if in == nil {
		return true
	}
	pod, known := in.Pod.Get()
	r, heard := in.Report.Get()
	return known && pod.Terminating || heard && r.Terminating
}

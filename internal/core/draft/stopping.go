package draft

// IsStopping reports whether the named instance is being stopped. One that is not there is gone.
func (d *Draft) IsStopping(name string) bool {
	in := d.Observation.Instance(name)
	return in == nil || in.IsStopping()
}

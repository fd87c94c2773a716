package agent

// Acknowledges reports whether the instance acknowledges the commits of its source.
func (c *Cluster) Acknowledges(name string) bool {
	return c.Durability.Awaits() && c.IsMember(name)
}

// giveAcks has mysqld acknowledge if this instance is counted, and only then. That takes effect
// from the next connection on.
func giveAcks(f *Facts) []Action {
	wish := f.Cluster.Acknowledges(f.Me)
	if f.Server.SemiSync.ReplicaEnabled == wish {
		return nil
	}
	return []Action{GiveAcks{wish}}
}

package draft

import "cnmsql.co/internal/core"

// PruneServices deletes the Services that lead to roles, and for which the spec does not ask any more. Those for
// which it asks are made and mended beside all plans.
func (d *Draft) PruneServices() {
	for _, s := range d.Cluster.Services {
		if !s.Wanted && !s.Deleting {
			d.Do(core.DeleteService{Name: s.Name, UID: s.UID})
		}
	}
}

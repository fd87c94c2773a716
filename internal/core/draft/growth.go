package draft

import (
	"slices"
	"time"

	"cnmsql.co/internal/core"
)

// growAgain is when a growth that was refused is asked for again, although nothing has changed that the operator
// sees: a quota may have.
const growAgain = time.Minute

// GrowVolumes has the claims of all instances ask for the size in the spec. Whether the volumes then grow, and
// when, is the storage class's to say.
func (d *Draft) GrowVolumes() {
	for i := range d.Instances {
		if in := &d.Instances[i]; slices.Contains(d.Status.InstanceNames, in.Name) {
			d.growVolume(in)
		}
	}
}

func (d *Draft) growVolume(in *core.Instance) {
	vol, known := in.Volume.Get()
	if !known || !vol.Exists || vol.Deleting || vol.Asks >= d.Cluster.VolumeSize.Bytes {
		return
	}
	grow := core.GrowVolume{Instance: in.Name, VolumeUID: vol.UID, To: d.Cluster.VolumeSize.Text}
	if vol.Refused == nil || !d.Now.Before(vol.Refused.At.Add(growAgain)) {
		d.Do(grow)
		return
	}
	d.Standing = append(d.Standing, grow.String()+": "+vol.Refused.Why)
	d.RecheckAt(vol.Refused.At.Add(growAgain))
}

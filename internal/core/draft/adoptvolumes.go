package draft

import (
	"fmt"
	"slices"
	"strings"

	"cnmsql.co/internal/core"
)

// AdoptVolumes has a Cluster that never had a primary go on with the volumes that were
// kept of a deleted Cluster of its name, when a human asks for it. It reports whether
// nothing may be made meanwhile: an empty database beside the data of before is what
// nobody wants.
func (d *Draft) AdoptVolumes() bool {
	s := &d.Status
	if s.Promotion != nil || !s.EstablishedAt.IsZero() || s.Group.WasMade() {
		if wish := d.Cluster.AdoptFrom; wish != "" && wish != s.AdoptedFrom {
			d.Remark(core.RefusalAdoption, "", "no volumes are adopted: the Cluster has data of its own; remove the "+
				"annotation cnmsql.cnmsql.co/adopt-volumes")
		}
		return false
	}
	if s.AdoptedFrom == "" && !d.beginAdoption() {
		return d.IsBlocked()
	}
	pending := false
	for _, v := range d.Cluster.FormerVolumes {
		if v.Of != s.AdoptedFrom {
			continue
		}
		pending = true
		d.Do(core.AdoptVolume{Instance: v.Instance, UID: v.UID, Of: v.Of})
		if !v.Removed && !slices.Contains(s.InstanceNames, v.Instance) {
			s.InstanceNames = append(s.InstanceNames, v.Instance)
		}
	}
	if pending {
		d.Doing("adopting the volumes of the Cluster of UID " + s.AdoptedFrom)
	}
	return pending
}

// beginAdoption reports whether volumes are to be adopted.
func (d *Draft) beginAdoption() bool {
	var names []string
	former, wish := "", d.Cluster.AdoptFrom
	for _, v := range d.Cluster.FormerVolumes {
		if former = v.Of; v.Of == wish && !v.Removed {
			names = append(names, v.Instance)
		}
	}
	switch {
	case wish == "" && former == "":
	case d.Cluster.FirstData.IsElsewhere():
		d.blockRestoreBesideKept(former, wish)
	case wish == "":
		d.Block(core.RefusalVolumesKept, fmt.Sprintf("there are volumes with the data of a deleted Cluster of this "+
			"name, of UID %[1]s, and nothing is made beside them. To go on with its data: "+
			"kubectl annotate cluster %[2]s cnmsql.cnmsql.co/adopt-volumes=%[1]s. Or delete them, to start again: "+
			"kubectl get pvc -l mysql.cnmsql.co/cluster=%[2]s", former, d.Cluster.Name))
	case len(names) == 0:
		d.Block(core.RefusalAdoption, "no volume of a deleted Cluster of this name has the UID "+wish+
			": correct the annotation cnmsql.cnmsql.co/adopt-volumes, or remove it to start again; the claims have "+
			"their UID in the annotation mysql.cnmsql.co/clusterUID")
	default:
		d.Status.AdoptedFrom = wish
		d.Tell(core.ReasonVolumesAdopted, fmt.Sprintf("the Cluster goes on with the volumes of %s, which were kept "+
			"of the deleted Cluster of UID %s", strings.Join(names, ", "), wish))
	}
	return d.Status.AdoptedFrom != ""
}

// blockRestoreBesideKept refuses to adopt volumes where the spec says to begin with a backup: of
// the two only one can be done, and to guess which would give a human other data than he expects.
func (d *Draft) blockRestoreBesideKept(former, wish string) {
	find := "kubectl get pvc -l mysql.cnmsql.co/cluster=" + d.Cluster.Name
	restore := "To begin with that: create the Cluster under another name, or delete the kept volumes if nobody " +
		"needs their data: " + find
	adopt := "To go on with the kept data: delete this Cluster, which has no data yet, and create it without " +
		"spec.bootstrap.recovery and with the annotation cnmsql.cnmsql.co/adopt-volumes="
	if wish == "" {
		d.Block(core.RefusalVolumesKept, fmt.Sprintf("spec.bootstrap.recovery says what to begin with, and there "+
			"are volumes with the data of a deleted Cluster of this name, of UID %s: nothing is written beside them. "+
			"%s. %s%s", former, restore, adopt, former))
		return
	}
	d.Block(core.RefusalAdoption, fmt.Sprintf("spec.bootstrap.recovery says what to begin with, and the "+
		"annotation cnmsql.cnmsql.co/adopt-volumes to go on with the volumes of the Cluster of UID %s: only one of "+
		"the two can be. %s; and remove the annotation. %s%s", wish, restore, adopt, wish))
}

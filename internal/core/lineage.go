package core

// Lineage tells of which history of a group an instance's data are. A group that goes on without some
// of its members may give numbers again that stand for other transactions on their volumes. So GTIDs
// of a group compare only where the lineage is the same.
type Lineage struct {
	// Group is its name; "" of data that were never a member of one.
	Group string `json:"group,omitempty"`
	// Recovery is the epoch of the last recovery that the group had when the data were a member of it, and
	// FirstEpoch where it had none; 0 where that was not noted.
	Recovery int64 `json:"recovery,omitempty"`
	// Doubted tells that the group went on without a majority since, in a recovery of which nobody has told.
	Doubted bool `json:"doubted,omitempty"`
}

// FirstEpoch is the one in which a Cluster begins.
const FirstEpoch = 1

// LineageOf is that of a group's members.
func LineageOf(group string, recoveries []GroupRecovery) Lineage {
	l := Lineage{Group: group, Recovery: FirstEpoch}
	if n := len(recoveries); n > 0 {
		l.Recovery = recoveries[n-1].Epoch
	}
	return l
}

// Latest is the lineage in which a group went on last, of those that its former members have. known is false where
// one of them does not tell, or doubts its own, or they were members of several groups.
func Latest(all []Lineage) (latest Lineage, known bool) {
	for _, l := range all {
		switch {
		case l.Group == "":
		case l.Recovery == 0, l.Doubted, latest.Group != "" && latest.Group != l.Group:
			return Lineage{}, false
		case l.Recovery > latest.Recovery:
			latest = l
		}
	}
	return latest, true
}

package agent

// Latest is how far an instance has seen its Cluster's status get. A status goes back when
// etcd is restored from a backup, and seems to when an API server answers from an old
// cache. Then it names as primary who was one once, and whoever goes by it accepts writes
// beside the primary, or without what was acknowledged since.
type Latest struct {
	// Epoch is the highest that the Cluster's status was seen to have, by this manager or,
	// as the volume remembers, by one before it. Orders of the operator do not count:
	// they may speak of an epoch that never comes.
	Epoch int64
	// Past tells whether the status that is served at present has a lower one.
	Past bool
}

// Recall takes what the volume remembers.
func (l *Latest) Recall(epoch int64) { l.Epoch = max(l.Epoch, epoch) }

// Take says by what an instance goes after it was told next, and had known before. A
// status of the past is as good as none: what was known stays, as if the API server were
// away; and who knew nothing runs mysqld, promoted nobody knows whom, so that it can say
// what it holds. A group has a primary by its own members' vote, and its members go by a status of the
// past; that it is one they remember, and tell the operator, who mends it.
func (l *Latest) Take(before, next *Cluster) *Cluster {
	l.Past = next.Epoch < l.Epoch && !next.Topology.ElectsByItself()
	l.Recall(next.Epoch)
	switch {
	case !l.Past:
		return next
	case before != nil && before.Epoch >= l.Epoch:
		return before
	}
	nobody := *next
	nobody.Epoch, nobody.Promotion, nobody.Established = l.Epoch, nil, true
	nobody.CurrentPrimary, nobody.GivesData, nobody.SwitchoverFrom, nobody.FailoverFrom,
		nobody.DelayedFrom = "", "", "", "", ""
	return &nobody
}

// IsKept reports whether the volume remembers it: kept is what stands there.
func (l Latest) IsKept(kept int64) bool { return kept >= l.Epoch }

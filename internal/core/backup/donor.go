package backup

import (
	"fmt"
	"math"
	"slices"
	"time"

	"cnmsql.co/internal/core"
)

// Instance is what is known of one instance of the Cluster.
type Instance struct {
	Name string
	// Primary takes writes; Replica has its data and follows. Neither is so while it is
	// being made.
	Primary, Replica bool
	// Ready tells whether it is Running, current and in its Services.
	Ready bool
	// Excluded tells whether it was fenced by a human, has diverged, or its replication is broken.
	Excluded bool
	// Stalls, of the primary: its commits do not end, or nobody knows whether they do.
	Stalls bool
	// Hangs, of the primary: its commits are known to wait for replicas. No copy of it ends before
	// they do.
	Hangs bool
	// Joining tells whether it is being given its data, by an instance that serves
	// nobody else meanwhile.
	Joining bool
	// Lag is how far it is behind the primary.
	Lag core.Fact[time.Duration]
}

// isNear is the lag below which a replica does not lag. It is more than replicas differ
// by from look to look.
const isNear = time.Second

// behind orders replicas by what they are behind the primary, in whole seconds; one of which
// that is not known comes last.
func (in Instance) behind() time.Duration {
	if lag, known := in.Lag.Get(); known {
		return max(lag, 0).Truncate(isNear)
	}
	return math.MaxInt64
}

// before reports whether to take one rather than another: that which is nearer to the primary
// or, of those that are as near, the last by name.
func (in Instance) before(other Instance) bool {
	if a, b := in.behind(), other.behind(); a != b {
		return a < b
	}
	return later(in.Name, other.Name)
}

// StandbyPatience is how long a backup waits for a replica before the primary is taken: a
// replica that is restarted, or that a node is found for, is ready again before, and a schedule
// of a quarter of an hour misses nothing.
const StandbyPatience = 5 * time.Minute

// Wish is what a Backup asks for.
type Wish struct {
	// Primary tells whether the primary is to be backed up. Otherwise a replica is, and the primary
	// where it is alone, or where no replica has been ready for long.
	Primary bool
	// Instances that the Cluster should have.
	Instances int
	// Undecided tells whether a group was told to go on without some of its members,
	// and was not seen since.
	Undecided bool
	// Waited is how long the backup has waited already for an instance that can be backed up, and
	// for nothing else.
	Waited time.Duration
	// ReplicaOnly tells whether the primary does not do, however long it is waited.
	ReplicaOnly bool
}

// Choice is the instance that is backed up. Why tells why it is the primary, where a replica
// was preferred.
type Choice struct{ Name, Why string }

// Refusal is why no instance can be backed up now.
type Refusal struct {
	Reason  core.Reason
	Message string
}

// Donor chooses the instance that is backed up: that which is nearest to the primary of those
// that may be, for the backup waits until it holds what the primary has; of those that do not
// lag the last by name, so that the first ones, which become primary in turn, are left alone.
// An instance that gets its data goes first. Where no replica has been ready for StandbyPatience
// the primary is taken, so that a degraded cluster goes on being backed up; not while its
// commits hang, for then it holds what nobody may ever be told is committed. While nobody knows
// with whom a group went on, there is none: what is backed up might be of a history that the Cluster
// gives up, under numbers that it gives again.
func Donor(instances []Instance, w Wish) (Choice, *Refusal) {
	if w.Undecided {
		return Choice{}, &Refusal{core.BackupUndecided, "a group recovery excluded some members, and the group was " +
			"not seen since: it is not known which transactions are the Cluster's. The backup begins when the group " +
			"has its quorum; see kubectl cnmsql group status"}
	}
	if i := slices.IndexFunc(instances, func(in Instance) bool { return in.Joining }); i >= 0 {
		return Choice{}, &Refusal{core.BackupJoinGoesFirst, instances[i].Name + " is being given its data by another " +
			"instance, which serves one at a time; the backup begins after that"}
	}
	if w.Primary || w.Instances == 1 && len(instances) == 1 {
		return askedPrimary(instances)
	}
	if name := nearest(instances, func(in Instance) bool { return in.Replica }); name != "" {
		return Choice{Name: name}, nil
	}
	none := fmt.Sprintf("none of the %d instances is a ready replica", len(instances))
	if w.ReplicaOnly {
		return Choice{}, &Refusal{core.BackupNoDonor, none}
	}
	name := nearest(instances, func(in Instance) bool { return in.Primary && !in.Stalls })
	switch {
	case w.Waited < StandbyPatience:
		return Choice{}, &Refusal{core.BackupNoDonor, fmt.Sprintf("%s; the backup begins when one is, or uses the "+
			"primary after %.0f minutes without one. To use the primary now, create a Backup with spec.target: "+
			"primary", none, StandbyPatience.Minutes())}
	case name == "":
		return Choice{}, &Refusal{core.BackupNoDonor, none + ", and the primary is not used while it is not ready, " +
			"is fenced, or its commits hang; the backup begins when one of them can be used. Check the Cluster: " +
			"kubectl cnmsql status"}
	}
	return Choice{name, fmt.Sprintf("%s, and there has been none for %.0f minutes", none,
		StandbyPatience.Minutes())}, nil
}

// askedPrimary is the primary, which was asked for or is alone.
func askedPrimary(instances []Instance) (Choice, *Refusal) {
	name := nearest(instances, func(in Instance) bool { return in.Primary })
	if name == "" {
		return Choice{}, &Refusal{core.BackupNoDonor, "the primary is not ready; the backup begins when it is"}
	}
	if slices.ContainsFunc(instances, func(in Instance) bool { return in.Name == name && in.Hangs }) {
		return Choice{}, &Refusal{core.BackupNoDonor, fmt.Sprintf("commits on the primary %s wait for a replica, and "+
			"no copy of it can end before they do; the backup begins after that. Look at the replicas: kubectl "+
			"cnmsql status", name)}
	}
	return Choice{Name: name}, nil
}

// nearest of those that may be backed up and are as wished; "" when there is none.
func nearest(instances []Instance, isWished func(Instance) bool) string {
	var chosen Instance
	for _, in := range instances {
		if isWished(in) && in.Ready && !in.Excluded && (chosen.Name == "" || in.before(chosen)) {
			chosen = in
		}
	}
	return chosen.Name
}

// later orders names of instances, whose ordinals have no zeros before them.
func later(a, b string) bool { return len(a) > len(b) || len(a) == len(b) && a > b }

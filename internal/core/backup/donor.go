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
	// Ready: it is Running, current and in its Services.
	Ready bool
	// Excluded: it was fenced by a human, has diverged, or its replication is broken.
	Excluded bool
	// Joining: it is being given its data, by an instance that serves nobody else meanwhile.
	Joining bool
	// Lag is how far it is behind the primary.
	Lag core.Fact[time.Duration]
}

// isNear: less than that is no lag. It is more than replicas differ by from look to look.
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

// Wish is what a Backup asks for.
type Wish struct {
	// Primary: the primary is to be backed up. Otherwise a replica is, and the primary
	// only where it is alone.
	Primary bool
	// Instances that the Cluster should have.
	Instances int
	// Undecided: a group was told to go on without some of its members, and was not seen since.
	Undecided bool
}

// Refusal is why no instance can be backed up now.
type Refusal struct {
	Reason  core.Reason
	Message string
}

// Donor chooses the instance that is backed up: that which is nearest to the primary of those
// that may be, for the backup waits until it holds what the primary has; of those that do not
// lag the last by name, so that the first ones, which become primary in turn, are left alone.
// An instance that gets its data goes first. While nobody knows with whom a group went on, there is
// none: what is backed up might be of a history that the Cluster gives up, under numbers that it gives
// again.
func Donor(instances []Instance, w Wish) (string, *Refusal) {
	if w.Undecided {
		return "", &Refusal{core.BackupUndecided, "the group was told to go on without some of its members, and was " +
			"not seen since: nobody knows which transactions are the Cluster's. The backup begins when the group has " +
			"its quorum; see kubectl cnmsql group status"}
	}
	if i := slices.IndexFunc(instances, func(in Instance) bool { return in.Joining }); i >= 0 {
		return "", &Refusal{core.BackupJoinGoesFirst, instances[i].Name + " is being given its data by another " +
			"instance, which serves one at a time; the backup begins after that"}
	}
	primary := w.Primary || w.Instances == 1 && len(instances) == 1
	var chosen Instance
	for _, in := range instances {
		is := in.Replica && !primary || in.Primary && primary
		if is && in.Ready && !in.Excluded && (chosen.Name == "" || in.before(chosen)) {
			chosen = in
		}
	}
	switch {
	case chosen.Name != "":
		return chosen.Name, nil
	case primary:
		return "", &Refusal{core.BackupNoDonor, "the primary is not ready; the backup begins when it is"}
	}
	return "", &Refusal{core.BackupNoDonor, fmt.Sprintf("none of the %d instances is a ready replica; the backup "+
		"begins when one is. "+
		"To back up the primary, create a Backup with spec.target: primary", len(instances))}
}

// later orders names of instances, whose ordinals have no zeros before them.
func later(a, b string) bool { return len(a) > len(b) || len(a) == len(b) && a > b }

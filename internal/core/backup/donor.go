package backup

import (
	"fmt"
	"slices"

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
}

// Wish is what a Backup asks for.
type Wish struct {
	// Primary: the primary is to be backed up. Otherwise a replica is, and the primary
	// only where it is alone.
	Primary bool
	// Instances that the Cluster should have.
	Instances int
}

// Refusal is why no instance can be backed up now.
type Refusal struct {
	Reason  core.Reason
	Message string
}

// Donor chooses the instance that is backed up: the last by name of those that may be, so
// that the first ones, which become primary in turn, are left alone. An instance that gets
// its data goes first.
func Donor(instances []Instance, w Wish) (string, *Refusal) {
	if i := slices.IndexFunc(instances, func(in Instance) bool { return in.Joining }); i >= 0 {
		return "", &Refusal{core.BackupJoinGoesFirst, instances[i].Name + " is being given its data by another instance, which serves one at a time; the backup begins after that"}
	}
	primary := w.Primary || w.Instances == 1 && len(instances) == 1
	var chosen string
	for _, in := range instances {
		is := in.Replica && !primary || in.Primary && primary
		if is && in.Ready && !in.Excluded && later(in.Name, chosen) {
			chosen = in.Name
		}
	}
	switch {
	case chosen != "":
		return chosen, nil
	case primary:
		return "", &Refusal{core.BackupNoDonor, "the primary is not ready; the backup begins when it is"}
	}
	return "", &Refusal{core.BackupNoDonor, fmt.Sprintf("none of the %d instances is a ready replica; the backup begins when one is. "+
		"To back up the primary, create a Backup with spec.target: primary", len(instances))}
}

// later orders names of instances, whose ordinals have no zeros before them.
func later(a, b string) bool { return len(a) > len(b) || len(a) == len(b) && a > b }

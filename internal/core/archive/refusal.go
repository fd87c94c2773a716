package archive

import (
	"fmt"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// Refusals: why a target cannot be restored.
const (
	// TargetNotArchived says that the archive does not have the transaction: not yet, or never.
	TargetNotArchived core.Reason = "TargetNotArchived"
	// TargetBeforeBackup says that the base backup holds more than the target.
	TargetBeforeBackup core.Reason = "TargetBeforeBackup"
	// TargetAfterArchive says that nothing that late was archived.
	TargetAfterArchive core.Reason = "TargetAfterArchive"
	// TargetLost says that a failover lost the transaction.
	TargetLost core.Reason = "TargetLost"
	// TargetAmbiguous says that two primaries do not agree what was committed by then.
	TargetAmbiguous core.Reason = "TargetAmbiguous"
	// BackupNotOnBranch says that the base backup holds what a failover lost.
	BackupNotOnBranch core.Reason = "BackupNotOnBranch"
	// ArchiveGap says that transactions before the target were never archived.
	ArchiveGap = core.ReasonArchiveGap
	// PartMissing says that a part before the target was archived and is not there any more.
	PartMissing core.Reason = "PartMissing"
	// BranchMissing says that nobody knows without a branch what of the epochs before it survived.
	BranchMissing = core.RetentionBranchMissing
	// PartDamaged and FormatUnknown: what is needed is there, and cannot be read.
	PartDamaged   core.Reason = "PartDamaged"
	FormatUnknown core.Reason = "FormatUnknown"
	// ListedAbsent says that what is needed is listed by the store, which does not find it: nobody knows whether
	// it is there.
	ListedAbsent core.Reason = "ListedAbsent"
)

// Refusal is why there is no plan.
type Refusal struct {
	Reason core.Reason
	// GTIDs are those that are meant: missing, lost, unknown.
	GTIDs gtid.Set
	// Parts that are missing; of TargetAmbiguous, the branch in which the replay would end, and that of the
	// last primary that had committed by then what it would lack.
	Parts []Key
	// Nearest is the time nearest to the target that can be restored on the same base
	// backup; zero when it is not known.
	Nearest time.Time
	// Later is one behind the target that can be restored, too; zero when it is not known.
	Later time.Time
}

// shown is how many intervals of a set are shown.
const shown = 4

func (r *Refusal) Error() string {
	text := string(r.Reason) + ": " + r.advice()
	if !r.Nearest.IsZero() {
		text += ", or to " + r.Nearest.UTC().Format(time.RFC3339Nano)
	}
	if !r.Later.IsZero() {
		text += ", or to " + r.Later.UTC().Format(time.RFC3339Nano) + ", which is later"
	}
	return text
}

func (r *Refusal) advice() string {
	set := r.GTIDs.Abbreviate(shown)
	switch r.Reason {
	case TargetBeforeBackup:
		return "the backup holds more than the target: take an earlier one"
	case TargetAfterArchive:
		return "the archive ends before the target, so it is not known whether it holds everything up to the target: " +
			"restore to the latest"
	case TargetLost:
		return fmt.Sprintf("a failover lost %s, and no restore brings it back: restore to what was before it",
			set)
	case TargetAmbiguous:
		return fmt.Sprintf("a restore to this time would end in epoch %d, at a later commit of its primary, and lack "+
			"what the primary of epoch %d had committed by then: the former primary committed late, or their clocks "+
			"differ. Restore to the latest or to a GTID", r.Parts[0].Epoch, r.Parts[1].Epoch)
	case BackupNotOnBranch:
		return fmt.Sprintf("the backup holds %s, which a failover lost: take an earlier or a later backup", set)
	case ArchiveGap:
		return fmt.Sprintf("%s were never archived: take a backup that holds them, or restore to what was before them",
			set)
	case PartMissing:
		return fmt.Sprintf("%s, with %s, is not there any more: take a later backup, or restore to what was before it",
			partsText(r.Parts), set)
	case BranchMissing:
		return partsText(r.Parts) + " is missing, but its parts exist: without it, it is not known which " +
			"transactions of earlier epochs survived. Put it back from the store's versions or a copy, or take a " +
			"backup of a later epoch"
	case PartDamaged:
		return partsText(r.Parts) +
			", which is needed, is not what was written: look into the store's versions for an earlier one, take " +
			"a later backup, or restore to what was before it"
	case ListedAbsent:
		return partsText(r.Parts) +
			", which is needed, is listed by the store, but cannot be read from it: the instance asks again. If this " +
			"persists, put the object back from the store's versions or a copy, or restore to what was before it"
	case FormatUnknown:
		return partsText(r.Parts) +
			", which is needed, has a format that this release does not know: use the release that wrote it, or a " +
			"later one"
	default:
		return fmt.Sprintf("%s is not in the archive, or not yet: commits are archived within targetRPOSeconds, and "+
			"a restoring Cluster checks again every half minute. If this persists, check that it is spelt as in "+
			"gtid_executed of the cluster", set)
	}
}

func partsText(keys []Key) string {
	if len(keys) == 0 {
		return "a part"
	}
	text := fmt.Sprintf("part %d of epoch %d", keys[0].Sequence, keys[0].Epoch)
	if keys[0].Sequence == 0 {
		text = fmt.Sprintf("branch.json of epoch %d", keys[0].Epoch)
	}
	if more := len(keys) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

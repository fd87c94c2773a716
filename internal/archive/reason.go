package archive

import "fmt"

// Reason is why the archive cannot be written or replayed: a name, which can become a
// condition, an event or a metric, and a sentence that says what to do.
type Reason struct{ Name, Advice string }

func (r *Reason) Error() string { return r.Name + ": " + r.Advice }

// Reasons of this package; the store has its own.
var (
	PromotionNotHeld = &Reason{"PromotionNotHeld",
		"this instance does not hold the promotion of the epoch any more: its successor archives"}
	ForeignArchive = &Reason{"ForeignArchive",
		"another cluster writes its archive here: give each cluster a path of its own"}
	BranchTaken = &Reason{"BranchTaken",
		"another server has written this epoch's archive: check whether two instances believe that they are primary"}
	PartConflict = &Reason{"PartConflict",
		"the part was written with another content: look who else writes here; " +
			"what is there is kept, and shipping starts again behind it"}
	PartDamaged = &Reason{"PartDamaged",
		"the object is not what was written: look into the store's versions for an earlier one; " +
			"a later base backup does without it"}
	FormatUnknown = &Reason{"FormatUnknown",
		"it was written in a format that this release does not know: use the release that wrote it, or a later one"}
	ServerSetBack = &Reason{"ServerSetBack",
		"the server was set back to an earlier state, and reuses GTIDs that the archive already has: give " +
			"spec.backup.objectStore another path, where a new archive begins with a backup; the data in the old " +
			"path can still be restored"}
	LogUnreadable = &Reason{"BinaryLogUnreadable",
		"the server's binary log cannot be archived: read what is wrong with it; " +
			"a base backup is needed to go on without it"}
	ApplierFailed = &Reason{"ReplayFailed",
		"the server could not apply a transaction: read its message; the data is that of the transaction before"}
	ReplayStuck = &Reason{"ReplayStuck",
		"the server applied all that it was given, but lacks some of these transactions: this is a mistake in the " +
			"program; please report it"}
	ServerIDTaken = &Reason{"ServerIDTaken",
		"the archive holds transactions of a server with the number that the replay uses: give it another"}
)

// refuse says what was wrong, and by which name.
func refuse(why *Reason, format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, why)...)
}

// because gives an error a name; both are found by errors.Is.
func because(why *Reason, err error) error { return fmt.Errorf("%w (%w)", err, why) }

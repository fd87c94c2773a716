package backup

import "fmt"

// Reason is why a backup is not taken or not restored: a name, which can become a
// condition, an event or a metric, and a sentence that says what to do.
type Reason struct{ Name, Advice string }

func (r *Reason) Error() string { return r.Name + ": " + r.Advice }

// Refusals.
var (
	ArchiveTaken = &Reason{"ArchiveTaken",
		"another cluster keeps its backups there, and two in one place would mix what belongs to neither: " +
			"give this one another path or bucket"}
	IdentityDamaged = &Reason{"IdentityDamaged",
		"whose archive it is cannot be read: " +
			"look what else writes there, and put identity.json back, or give another path"}
	BackupExists = &Reason{"BackupExists",
		"there is a backup of this name already, which is left as it is: choose another name"}
	BackupUnknown = &Reason{"BackupUnknown",
		"there is no such backup: list those that there are; one that is being taken is none before its end"}
	BackupUnfinished = &Reason{"BackupUnfinished",
		"parts without a manifest: a backup that is being taken, or was given up; " +
			"remove it if it does not change for a day"}
	BackupTooLarge = &Reason{"BackupTooLarge",
		"it has more files or parts than one backup can tell of, two million tables or some 50 TB: " +
			"have fewer of them in one cluster"}
	ManifestDamaged = &Reason{"ManifestDamaged",
		"the backup's manifest is not what was written: " +
			"restore another backup, and look what changes objects in the store"}
	FormatUnknown = &Reason{"FormatUnknown",
		"it was written in a format that this release does not know: use the release that wrote it, or a later one"}
	PartMissing = &Reason{"PartMissing",
		"an object of the backup is not in the store: " +
			"restore another backup, and look what deletes objects (lifecycle rules)"}
	PartDamaged = &Reason{"PartDamaged",
		"an object of the backup is not what was written: " +
			"restore another backup, and look what changes objects in the store"}
	SeriesDiffers = &Reason{"SeriesDiffers",
		"data of one series are not given to a server of another: " +
			"begin with an image of the series that the data are of, and upgrade after that"}
	ServerOlder = &Reason{"ServerOlder",
		"a server cannot read the data of a later release: " +
			"begin with an image of the release that the data are of, or a later one of its series"}
	VersionUnknown = &Reason{"VersionUnknown",
		"a version that is no x.y.z: tell the version of the server that the data are for"}
)

// refuse says what was wrong, and by which name.
func refuse(why *Reason, format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, why)...)
}

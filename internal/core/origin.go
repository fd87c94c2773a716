package core

// DataOrigin is where the data of an instance come from.
type DataOrigin int

const (
	// OriginNone: from nowhere, or nobody has said yet from where.
	OriginNone DataOrigin = iota
	// OriginInitialized: from nothing, as the first data of a cluster.
	OriginInitialized
	// OriginRestored: from a backup, as the first data of a cluster.
	OriginRestored
	// OriginCloned: from another instance of the cluster.
	OriginCloned
)

// FirstData is where the first data of a cluster come from.
func FirstData(fromBackup bool) DataOrigin {
	if fromBackup {
		return OriginRestored
	}
	return OriginInitialized
}

package core

// DataOrigin is where the data of an instance come from.
type DataOrigin int

const (
	// OriginNone is that of no data, or of data of which nobody has said yet where they come from.
	OriginNone DataOrigin = iota
	// OriginInitialized is that of the first data of a cluster, which are made from nothing.
	OriginInitialized
	// OriginRestored is that of the first data of a cluster, which are made from a backup.
	OriginRestored
	// OriginImported is that of the first data of a cluster, which are copied from a running server that
	// is none of its instances.
	OriginImported
	// OriginCloned is that of data from another instance of the cluster.
	OriginCloned
)

// IsElsewhere reports whether first data were those of another server before.
func (o DataOrigin) IsElsewhere() bool { return o == OriginRestored || o == OriginImported }

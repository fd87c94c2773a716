// Package backup takes a physical backup of a running mysqld into an object store, and
// restores it into an empty data directory.
//
// Take asks a donor for a snapshot (internal/clone), cuts it into parts, compresses them,
// and uploads several at a time; nothing touches a local disk. What makes the parts a
// backup is the manifest, which is written last: what no manifest names does not exist.
// Restore checks all that can be checked before it writes anything, and holds every part
// against its hash before a byte of it is applied. Read, List and Remove are what
// else there is to do with backups.
//
// The package knows the layout below a store (docs/archive-layout.md), the manifest's
// format, compression and hashes. It must not know which store it is, Kubernetes, SQL, or
// when a backup is due: a callback tells it what the donor has executed. Whatever it reads
// from a store may be damaged, and nothing is believed that a checksum does not vouch for.
//
// Memory of Take is at most 2*Parallel+1 buffers of PartSize and 1 MiB, of which only what
// parts fill is resident, compressed or not, and some 8 MiB; that of Restore is one compressed part
// and some 8 MiB for each reader. It does not depend on how large the data are, but for the
// manifest: some 300 bytes a part, and before compression some 100 bytes a table.
package backup

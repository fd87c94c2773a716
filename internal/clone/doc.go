// Package clone is the recipient of MySQL's clone protocol: it takes a consistent
// snapshot of a running server's InnoDB data over two connections, without a local
// disk, and writes such a snapshot into an empty data directory.
//
// Snapshot talks to a donor and hands what it sends to a Consumer, in order, as
// Records: a descriptor and, for data, a block of at most a few MiB. There are two
// consumers here. Cutter writes the records into parts of bounded size, which together
// are a backup; Applier writes them into a directory that mysqld can start on. Replay
// gives an Applier what a Cutter has written, ReplayParts does so with several readers.
//
// The package knows the wire, the descriptors and what InnoDB expects of a cloned data
// directory. It must not know compression, encryption, object storage, Kubernetes, or
// when a backup is due: that is its callers' business. Whatever it reads may be hostile
// or damaged: every length is bounded before anything is allocated for it, names stay
// inside of the directory, and what is unknown is refused by name (Reason).
//
// The protocol is internal to MySQL and not documented there. What this package relies
// on, and with which versions it was verified, stands in
// docs/design/2026-11-23-clone-protocol.md.
package clone

// Package archive keeps a cluster's binary logs in an object store and gives them back.
// Shipper reads the logs of a running server from its files and stores them in parts, while
// the instance holds the promotion of an epoch. Load finds out what a store holds, Choose
// what of it leads to a target, and Replay gives that to a running server, whose own
// parallel applier does the work.
//
// The package knows files of binary logs, the layout of the archive and SQL of replication.
// It must not know who may be primary (it asks a callback before each write), nor when a
// backup is due. What survives a promotion, and what a target needs, is decided in
// internal/core/archive.
//
// Below the prefix, log/ of a cluster, lie
//
//	EPOCH/branch.json              what a promotion began, written first
//	EPOCH/SEQUENCE.binlog.zst      the parts, from 1, without holes
//
// both numbers with ten digits. `zstd -d` makes of a part a binary log that mysqlbinlog
// reads: the beginning of the server's file, the GTIDs before it, and whole transactions as
// the server wrote them. The facts of a part stand in a skippable frame at its beginning.
// Of a part that is encrypted, age and then `zstd -d` make it of what stands behind that
// frame. A transaction larger than a part is cut into pieces, which make up a log one behind the
// other.
package archive

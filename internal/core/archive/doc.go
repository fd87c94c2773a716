// Package archive decides about the continuous archive of binary logs: which of its parts
// a restore has to replay on a base backup to come to a target, and which transactions no
// restore ever replays because a failover lost them.
//
// An archive has a branch for each promotion. A branch holds, in parts, what the primary of
// its epoch wrote, and says what that primary had executed when it was promoted. What an
// earlier branch holds beyond that was lost by the promotion: it stays readable, and is
// never replayed.
//
// The package knows facts of branches, parts and backups. It must not know how they are
// stored or read, nor the time: whether a target is in the future is told by the archive
// alone. The same facts give the same plan, in whatever order they were listed.
package archive

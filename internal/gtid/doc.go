// Package gtid holds MySQL's GTID sets as values: it parses them, compares
// them, computes with them and prints them as a server does. Whether an
// instance is errant, behind or a fit candidate is arithmetic on these values,
// and no server has to be alive for it.
//
// The package knows the text format of MySQL 9.7, tags included (uuid:1-3:tag:5-9),
// and set algebra. It must not know SQL, instances, topologies or Kubernetes:
// what a difference between two sets means is for its callers to say.
//
// MySQL 9.7 has two parsers. The package follows that of GTID_SUBSET and
// GTID_SUBTRACT, and a test holds it against them. SET GLOBAL gtid_purged uses
// the older one, which takes 010 for eight and knows no braces: send a server
// what String returns, which both read alike, never a text that people wrote.
package gtid

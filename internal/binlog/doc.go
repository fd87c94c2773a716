// Package binlog reads as much of MySQL's binary log format as is needed to find
// the tail of a crashed primary's last log that its successor does not hold, and
// to cut it off with a copy kept. It knows files and GTIDs, and nothing of
// whether a tail may be cut: that is decided elsewhere.
//
// The format is that of the MySQL Internals manual ("Binary Log Event"), version
// 4: a file begins with four bytes of magic, then events follow, each with a
// header of 19 bytes that holds its type at 4 and its length at 9.
package binlog

// Package client is the way from a Pod's exec into the mysql client, without a
// shell and without a password in arguments, environment or on a disk. It knows
// where the manager finds accounts; it must not know what is asked of MySQL.
package client

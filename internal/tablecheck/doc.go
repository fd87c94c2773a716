// Package tablecheck asks a server whether its tables are sound, and what their rows add up
// to. It knows SQL and a connection, and not why it is asked; it writes nothing.
package tablecheck

// Package sim runs the real decisions, core/async.Decide and core/agent.Decide,
// in a model world: an API server with watches that lag, nodes that die, links
// that are cut in one direction, clocks that drift and jump, mysqld with all that
// semi-synchronous replication does to a commit, clients that remember what was
// acknowledged, and a user who does the wrong thing at the wrong moment.
//
// One seed is one run, byte for byte. Time jumps from event to event; nothing
// ticks while nothing happens. After every event that could break them the
// invariants I1 to I7 of the design are held against the truth of the model, not
// against what anybody in it believes.
//
// One run in four archives its binary logs, to an object store that is slow, away at
// times, and lies in its listings. What is shipped and what a restore replays are the rules
// of core/archive; from the newest backup, a restore has to hold what was acknowledged, is
// older than the RPO and survived, and nothing else.
//
// The shells around the decisions (internal/operator, internal/instance) are
// modelled here, for they are I/O; whoever changes what they promise changes the
// model, too. What is not modelled: TLS, accounts, configuration files, Group
// Replication, what is in a backup and in an object, several clusters.
package sim

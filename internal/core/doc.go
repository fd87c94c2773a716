// Package core is the vocabulary of cnmsql's decisions: what is known of a
// cluster at one moment (Observation) and what to do about it (Plan). Its
// subpackages decide: async for a primary with replicas, group for the members of
// a group, agent for what one instance does about its own mysqld. The first two
// write their plans with draft.
//
// It must not know how a fact was obtained or how an effect is carried out: no
// I/O, no clock, no goroutine, no Kubernetes client, no SQL. Time is part of
// the observation. The same observation always gives the same plan, so that a
// decision can be read as text, tested as text, and simulated.
package core

// Package agent decides what one instance should do about its own mysqld: make
// data, start, demote, promote, follow, stop. It is the other half of the
// operator's decisions, and as pure: facts in, a decision out. Now is a fact.
//
// It knows the protocol by which exactly one instance becomes writable
// (docs: epochs, promotions, promises) and the rules of joining and rejoining.
// It must not know how an action is carried out, what a process or a connection
// is, or anything of Kubernetes.
//
// Decide is level-triggered: the shell carries out the actions in their order,
// stops at the first that fails, looks again and asks again.
package agent

// Package whatif tells what would become of a cluster if it lost some of its
// instances now. It takes an observation, loses them in a model, and plays the
// operator's own decisions (core/topology.Decide) forward until somebody is granted
// the promotion, the group has another primary, or nothing changes any more.
//
// It knows what a manager that can be reached does about an order, how long the
// loss of a peer goes unnoticed, and whom a group elects. It must not decide
// anything itself, nor judge what an instance may do: it asks core/agent, as the
// manager itself does (rules.go). It does no I/O: time is the model's. What it
// leaves out it says in Answer.Assumed.
package whatif

// Package draft is a plan in the making: the observation that it is made of, what is
// decided so far, and what is said about it. It knows what is the same whoever decides:
// that an event is for what is new, that the first hindrance stands, how instances are
// made and removed, who waits for a copy of the data, and what kube-proxy has to be
// spared.
//
// It must not know who may be primary, or what a topology is: async and group have the
// rules, and write down here what comes of them. What only looks alike in the two, and
// follows another rule, stays with them.
package draft

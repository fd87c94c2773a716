//go:build e2e

// Package e2e tests the whole product on a real local Kubernetes: real Pods,
// real mysqld, real faults. It needs root; it brings up what it needs and touches
// no other local Kubernetes. E2E_KEEP=1 takes the local Kubernetes that is
// there, and leaves it behind, with what a test that failed has made, whose story ends at
// the step that failed; E2E_NAME is its name.
//
// A test is a story of one capability, which the comment above it names. Most have
// steps, which stand in a table with what each needs (story, share.Need): a Cluster of so
// many instances, healthy, with an operator that leads. The first step that needs one has it
// made, and the steps share it: each leaves it healthy and with the spec that it found, or
// says that nobody else gets it. A step that does neither fails itself; after one that
// failed the next has a Cluster made. So each step can be played alone by its name, and
// -alone plays all of them as if each were. The tests of cluster_test.go, which need the same Cluster, hand
// it on from one to the next (handedOn). What a step asserts it reads from what came
// about since it began: eventSays counts no event of before.
//
// A step that fails shows the Cluster, its events, and the logs of operator and
// instances, before anybody else touches them.
package e2e

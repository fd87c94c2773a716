// Command soak brings up a cluster of three under quorum durability on a local
// Kubernetes, writes to it, and draws faults for as long as it is told to. In the end
// it holds the invariants against what every instance has, in its tables and in its
// binary logs, and what the clients of a few registers saw against what one copy of
// them would have answered.
//
// A seed draws the same faults in the same order; the machine underneath does not
// repeat itself. It needs root, and touches no other local Kubernetes.
package main

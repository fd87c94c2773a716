// Package layout is the plan of a cluster: every name, address and path that
// localkube makes follows from the cluster's name, index and directory. That is
// what lets `down` remove all of it, also when `up` died in the middle.
//
// It is pure: it looks at no file, network or process.
package layout

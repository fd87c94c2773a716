// Package cluster brings a whole cluster up, repairs it, breaks it on purpose
// and takes it down. It knows the order of things; how each is done is in the
// packages below it.
package cluster

// Package observation turns what Kubernetes says of a Cluster into the facts that
// core decides by, and core's status into the Cluster's. It is pure: whoever has
// read the objects, the operator from its caches or the plugin from the API
// server, gets the same facts of them, so that the plugin can tell beforehand what
// the operator will decide.
//
// It knows the API and core's vocabulary. It must not know how objects are read,
// nor decide anything.
package observation

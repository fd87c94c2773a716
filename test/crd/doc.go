// Package crd tests what the API server itself makes of a Cluster: defaults,
// rules and policies, each with a manifest that is accepted and one that is
// refused with its message. A real etcd and a real kube-apiserver run for it,
// from the directory that CNMSQL_KUBE_BIN names (`localkube build` prints the
// path of the kubectl in one); without it the tests are skipped.
package crd

// Package resources builds the Kubernetes objects of a Cluster: each function
// is pure and returns one typed object that holds only the fields the operator
// owns, ready to be applied server-side. It knows what the objects look like;
// it must not know whether they exist, nor when to make or delete them.
//
// The names and paths that a Pod and the manager in it agree upon are in
// package layout.
package resources

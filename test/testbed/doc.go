// Package testbed brings up what the demo and the end-to-end tests run on: a
// local Kubernetes (or the one that KUBECONFIG names), the images, the operator,
// and the handful of verbs that both use. It knows how to make things happen and
// what can be seen from outside; it asserts nothing.
package testbed

// Package plugin is kubectl-cnmsql: what a person on call asks of a Cluster
// and may ask for. It knows the Cluster's API, the instances' status and how to
// put both in words. It must not decide anything for the operator: a request is
// written into the status, and the operator's answer is shown.
//
// What is shown is built in two steps: gather collects Facts, Build makes a
// Report of them without I/O or clock, and renderers print it. The tables in
// testdata are what people see.
package plugin

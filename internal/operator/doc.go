// Package operator is the shell around the deciding core: it observes clusters
// through Kubernetes watches and the status streams of their instances, asks
// core for a plan, writes the status and carries the effects out. It holds no
// policy of its own.
package operator

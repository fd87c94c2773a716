//go:build e2e

// Package e2e tests the whole product on a real local Kubernetes: real Pods,
// real mysqld, real faults. It needs root; it brings up what it needs and touches
// no other local Kubernetes. E2E_KEEP=1 takes the local Kubernetes that is
// there, and leaves it behind; E2E_NAME is its name.
package e2e

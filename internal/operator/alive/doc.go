// Package alive keeps the operator's process where it is while the API server is out of reach: it answers the
// kubelet's probes from the first moment on, and waits. A container that ends instead, or that its probe ends, is
// started again after ever longer pauses, up to five minutes, and nobody fails over meanwhile. It knows whether
// the API server answers; it must not know what is asked of it.
package alive

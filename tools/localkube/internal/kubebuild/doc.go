// Package kubebuild builds Kubernetes. Its sources are embedded as text (a Go
// module in a subdirectory could not be), written to the cache and built there
// with the Go toolchain, once for each version and each change of the sources.
package kubebuild

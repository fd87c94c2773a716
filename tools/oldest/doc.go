// Package oldest holds what the chart installs against the oldest Kubernetes that it promises: whether
// its API server would compile each CEL expression. It has a go.mod of its own, for the API server's
// libraries are none of the product's.
package oldest

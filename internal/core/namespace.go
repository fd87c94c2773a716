package core

// DeleteCluster deletes this very Cluster.
type DeleteCluster struct{ UID string }

func (DeleteCluster) effect() {}

func (DeleteCluster) String() string { return "delete the Cluster with its namespace" }

// EndWithNamespace returns what to do about a Cluster before anything else is asked or made; nothing, unless it is
// known that its namespace is being deleted. Kubernetes deletes a namespace's Pods first and all else when they are
// gone: until then the Cluster would be wanted, and its primary would wait for a successor that nobody can make any
// more. An instance that sees its Cluster deleted does not wait.
func EndWithNamespace(uid string, ends Fact[bool]) []Effect {
	if !ends.Is(func(ends bool) bool { return ends }) {
		return nil
	}
	return []Effect{DeleteCluster{UID: uid}}
}

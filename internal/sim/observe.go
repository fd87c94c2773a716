package sim

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"cnmsql.co/internal/core"
)

// observe gathers an Observation from the caches and the streams.
func (op *operator) observe(c *clusterObject) core.Observation {
	read := op.clock()
	route := watched[routeObject](op.routes, "rw")
	o := core.Observation{Carried: op.carried, Cluster: core.Cluster{
		Name: clusterName, Generation: c.generation, Failed: op.failed, Wanted: c.spec.instances,
		VolumeSize: volumeSize(c.spec.size),
		Durability: c.spec.durability, Follows: c.spec.follows,
		FailoverDelay: op.w.conf.delay, SwitchoverLimit: op.w.conf.switchover,
		SwitchoverPause: op.w.conf.pause, Status: c.status,
		PrimaryLease: c.spec.lease, Policy: op.w.conf.policy, Override: c.spec.override, Reinit: c.spec.reinit,
	}}
	o.Cluster.Lease = op.lease(watched[leaseObject](op.leases, "primary"), op.leases.versions["primary"], read)
	if route != nil {
		o.Cluster.Routed = core.Known(route.primary, read, read)
	}
	for _, name := range op.instanceNames(c) {
		o.Instances = append(o.Instances, op.instance(c, name, read))
	}
	o.Now = op.clock()
	return o
}

func (op *operator) instanceNames(c *clusterObject) []string {
	seen := map[string]bool{}
	for _, name := range c.status.InstanceNames {
		seen[name] = true
	}
	for name := range op.pods.objects {
		seen[name] = true
	}
	for name := range op.volumes.objects {
		seen[name] = true
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b string) int { return cmp.Compare(ordinalOf(a), ordinalOf(b)) })
}

func (op *operator) instance(c *clusterObject, name string, read time.Time) core.Instance {
	in := core.Instance{Name: name, Ordinal: ordinalOf(name), EndedPods: op.ended[name],
		NotMade: op.notMade[name].Names()}
	pod := watched[podObject](op.pods, name)
	in.Pod = core.Known(podFacts(pod, c), read, read)
	var vol core.Volume
	if v := watched[volumeObject](op.volumes, name); v != nil {
		vol = core.Volume{Exists: true, UID: v.uid, Deleting: v.deleting, Bound: v.bound,
			Asks: volumeSize(v.asks).Bytes, Refused: op.refusedNow(v.uid, c.generation)}
	}
	in.Volume = core.Known(vol, read, read)
	if node := nodeToWatch(c, name, pod); node != "" {
		in.Node = core.Known(nodeFacts(watched[nodeObject](op.nodes, node)), read, read)
	}
	if st := op.streams[name]; st != nil {
		st.catchUp()
		st.words.Put(&in)
	}
	return in
}

func podFacts(p *podObject, c *clusterObject) core.Pod {
	if p == nil {
		return core.Pod{}
	}
	return core.Pod{Exists: true, UID: p.uid, Node: p.node, Awaited: p.awaited, Ready: p.ready, Terminating: p.deleting,
		Grace: 30 * time.Minute, Terminated: p.ended,
		Current: p.template == podTemplate{c.spec.template, c.spec.durability.Mode}, NeverStarted: !p.started,
		DemoteRequested: p.demote, FencingRequested: p.fence, Role: p.role, Routable: p.routable}
}

func nodeToWatch(c *clusterObject, name string, pod *podObject) string {
	var node string
	if pod != nil {
		node = pod.node
	}
	return c.status.Promotion.NodeToWatch(name, node)
}

func nodeFacts(n *nodeObject) core.Node {
	if n == nil {
		return core.Node{}
	}
	return core.Node{Exists: true, OutOfService: n.outOfService, Draining: n.draining}
}

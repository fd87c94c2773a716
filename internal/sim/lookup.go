package sim

// servers are all mysqld that run, in the order of their nodes and Pods.
func (w *world) servers() []*mysqld {
	var all []*mysqld
	for _, n := range w.nodes {
		for _, uid := range n.order {
			if m := n.containers[uid].manager; m != nil && m.proc != nil && !m.proc.dead {
				all = append(all, m.proc)
			}
		}
	}
	return all
}

func (w *world) nodeOf(name string) *node {
	for _, n := range w.nodes {
		if n.name == name {
			return n
		}
	}
	return nil
}

// managerOf is where the name of an instance leads: to its Pod of now.
func (w *world) managerOf(instance string) *manager {
	p := w.api.pod(instance)
	if p == nil {
		return nil
	}
	n := w.nodeOf(p.node)
	if n == nil {
		return nil
	}
	if c := n.containers[p.uid]; c != nil {
		return c.manager
	}
	return nil
}

func (w *world) serverOf(instance string) *mysqld {
	if instance == outsideName && w.outside != nil {
		return w.outside
	}
	m := w.managerOf(instance)
	if m == nil || m.proc == nil || m.proc.dead {
		return nil
	}
	return m.proc
}

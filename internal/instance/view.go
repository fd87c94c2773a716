package instance

import (
	"cmp"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/gtid"
)

// viewOf takes from a Cluster what an instance decides by.
func viewOf(c *v1alpha1.Cluster, me string) (*agent.Cluster, error) {
	s := &c.Status
	group, err := membershipOf(c, me)
	if err != nil {
		return nil, err
	}
	v := &agent.Cluster{
		Deleting:       c.DeletionTimestamp != nil,
		Generation:     c.Generation,
		Established:    s.EstablishedAt != nil,
		Epoch:          s.PrimaryEpoch,
		CurrentPrimary: s.CurrentPrimary,
		Diverged:       s.DivergedInstances,
		Fenced:         s.FencedInstances,
		Names:          s.InstanceNames,
		Instances:      max(int(c.Spec.Instances), len(s.InstanceNames)),
		Durability:     durabilityOf(c),
		Group:          group,
		Lease:          !isGroup(c) && (c.Spec.EnablePrimaryLease == nil || *c.Spec.EnablePrimaryLease),
		MaxStart:       time.Duration(cmp.Or(c.Spec.MaxStartDelay, 3600)) * time.Second,
		MaxStop:        time.Duration(cmp.Or(c.Spec.MaxStopDelay, 1800)) * time.Second,
	}
	if op := s.Operation; op != nil && op.Kind == string(core.OperationSwitchover) {
		v.SwitchoverFrom = op.From
	}
	p := s.Promotion
	if p == nil {
		return v, nil
	}
	required, err := gtid.Parse(p.RequiredGTID)
	if err != nil {
		return nil, err
	}
	v.Promotion = &core.Promotion{
		Epoch: p.Epoch, Instance: p.Instance, Proof: core.Proof(p.Proof), From: p.From,
		RequiredGTID: required, RequiredAcks: int(p.RequiredAcks), PodUID: p.PodUID, Node: p.Node,
		LosslessSince: p.LosslessSince,
	}
	return v, nil
}

func durabilityOf(c *v1alpha1.Cluster) core.DurabilityMode {
	s := c.Spec.MySQL.SemiSync
	if s == nil || !s.Enabled {
		return core.DurabilityAsync
	}
	return core.DurabilityMode(cmp.Or(s.DataDurability, v1alpha1.DurabilityPreferred))
}

// waitsForEver: a commit waits for acknowledgements until they come. That holds for
// a lossless promotion whatever the spec says by now: the operator takes the
// promise back first.
func waitsForEver(v *agent.Cluster) bool {
	return v != nil && (v.Durability == core.DurabilityQuorum || v.Promotion != nil && v.Promotion.LosslessSince > 0)
}

// ackTimeout is how long a commit waits for acknowledgements under the other modes.
func ackTimeout(c *v1alpha1.Cluster) time.Duration {
	if s := c.Spec.MySQL.SemiSync; s != nil && s.TimeoutMillis != nil {
		return time.Duration(*s.TimeoutMillis) * time.Millisecond
	}
	return 10 * time.Second
}

// memoryFor is what mysqld may use; 0 when nobody set a limit. The Pod's
// environment then holds the node's memory, which is not ours to fill.
func memoryFor(c *v1alpha1.Cluster, env int64) int64 {
	if q, ok := c.Spec.Resources.Limits["memory"]; ok {
		if env > 0 {
			return min(env, q.Value())
		}
		return q.Value()
	}
	if q, ok := c.Spec.Resources.Requests["memory"]; ok {
		return q.Value()
	}
	return 0
}

// setCluster takes a new view; nil when the Cluster is gone. A view that cannot
// be understood is as good as none.
func (m *manager) setCluster(c *v1alpha1.Cluster) {
	if c == nil {
		m.update(func(s *state) {
			if s.view != nil {
				v := *s.view
				v.Deleting = true
				s.view = &v
			}
			s.gone = true
		})
		return
	}
	v, err := viewOf(c, m.opt.Instance)
	if err != nil {
		m.log.Error("the Cluster's status cannot be understood; the former view is kept", "error", err)
		return
	}
	m.update(func(s *state) {
		s.cluster, s.view, s.gone = c, v, false
		s.seen = max(s.seen, v.Epoch)
		s.foreign = s.foreign || s.locked && !m.adopt(c, s.data)
	})
	poke(m.pubWake)
	poke(m.leaseWake)
}

// adopt remembers whose data the volume holds, and tells whether it is ours. A
// volume without data becomes ours, and what was promised for another cluster
// means nothing here.
func (m *manager) adopt(c *v1alpha1.Cluster, data core.DataState) bool {
	r := m.memory.get()
	ours := r.ClusterUID == string(c.UID) && r.Instance == m.opt.Instance
	if ours || r.ClusterUID != "" && data != core.DataEmpty {
		return ours
	}
	err := m.memory.change(func(r *remembered) {
		*r = remembered{ClusterUID: string(c.UID), Instance: m.opt.Instance, ServerID: m.opt.ServerID, Stage: r.Stage}
	})
	if err != nil {
		m.log.Error("remembering whose data this is", "error", err)
	}
	return true
}

package instance

import (
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/declared"
	"cnmsql.co/internal/observation"
)

// clusterState is what is known of the Cluster: its object, and what this instance decides by.
type clusterState struct {
	object *v1alpha1.Cluster
	view   *agent.Cluster
	views  int // counts the views that were taken, and that it was deleted
	// latest is how far the status of the Cluster of this UID was seen to get.
	latest   agent.Latest
	latestOf types.UID
	// seen is the highest epoch that the instance was told of, by the Cluster or by an order.
	seen int64
	// confirmed is the epoch of which the promotion was read from the API server.
	confirmed int64
}

// take goes by a view from now on.
func (s *clusterState) take(c *v1alpha1.Cluster, v *agent.Cluster) {
	if !v.Succeed(s.view, time.Now()) {
		s.confirmed = 0
	}
	s.views++
	s.object, s.view = c, v
	s.seen = max(s.seen, v.Epoch, s.latest.Epoch)
}

// takesVolume forgets the epochs that the volume told of, which were another Cluster's.
func (s *clusterState) takesVolume(c *v1alpha1.Cluster) {
	s.seen = c.Status.PrimaryEpoch
	if s.latestOf == c.UID {
		s.seen = max(s.seen, s.latest.Epoch)
	}
}

// deleted takes the Cluster in view for one that is being deleted: there is none any more.
func (s *clusterState) deleted() {
	if s.view != nil {
		v := *s.view
		v.Deleting = true
		s.view = &v
		s.views++ // what was read before is of before
	}
}

// clusterFor takes from a Cluster what an instance decides by.
func clusterFor(c *v1alpha1.Cluster, me string) (*agent.Cluster, error) {
	status, err := observation.StatusFrom(&c.Status)
	if err != nil {
		return nil, err
	}
	v := &agent.Cluster{
		Deleting:   c.DeletionTimestamp != nil,
		Generation: c.Generation,
		FirstData:  declared.FirstData(&c.Spec),
		Instances:  int(c.Spec.Instances),
		Durability: declared.DataDurability(&c.Spec),
		Topology:   topologyOf(c),
		Lease:      topologyOf(c).HasLease() && declared.PrimaryLease(&c.Spec),
		MaxStart:   declared.MaxStart(&c.Spec),
		MaxStop:    declared.MaxStop(&c.Spec),
	}
	v.TakeStatus(&status, me)
	if v.Topology.RunsGroup() {
		v.Group.Rejoins = *declared.Group(&c.Spec).AutoRejoinTries > 0
	}
	return v, nil
}

// countedBy is of a Cluster what decides whether an instance acknowledges, and what it keeps for that.
func countedBy(c *v1alpha1.Cluster) *agent.Cluster {
	a := &agent.Cluster{Durability: declared.DataDurability(&c.Spec), Topology: topologyOf(c),
		Members: c.Status.Members}
	if p := c.Status.Promotion; p != nil {
		a.Promotion = &core.Promotion{LosslessSince: p.LosslessSince}
	}
	return a
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
		m.update(func(s *state) { s.cluster.deleted() })
		return
	}
	m.takeView(c, func(*state) bool { return true })
}

// takeView takes a new view if it may, which is asked under the lock. Whose the volume is from then on is kept on
// it before, and not under the lock: a volume that stalls must hold up nobody else.
func (m *manager) takeView(c *v1alpha1.Cluster, may func(*state) bool) {
	v, err := clusterFor(c, m.opt.Instance)
	if err != nil {
		m.log.Error("cannot read the Cluster's status; the manager goes by the last one that it could read",
			"error", err)
		return
	}
	m.adopt(c, may)
	m.update(func(s *state) {
		if !may(s) {
			return
		}
		known := s.cluster.view
		if v = m.viewAfter(&s.cluster, c, v); v == known {
			return
		}
		s.cluster.take(c, v)
		s.volume.foreign = s.volume.foreign ||
			s.volume.locked && m.record.claimIn(c, m.opt.Instance, s.volume.data) == notOurs
	})
	poke(m.publisher.wake)
	poke(m.leases.wake)
	poke(m.follower.wake)
}

// claim is whose a volume is in view of a Cluster.
type claim int

const (
	ours claim = iota
	becomesOurs
	notOurs
)

// claimIn tells whose the volume of an instance is in view of a Cluster, by what is remembered on it. A
// volume without data becomes ours, and so does one of the deleted Cluster that this one
// goes on for.
func (r *volumeRecord) claimIn(c *v1alpha1.Cluster, instance string, data core.DataState) claim {
	mine := r.Instance == instance
	former := mine && c.Status.AdoptedFrom != "" && r.ClusterUID == c.Status.AdoptedFrom
	switch {
	case mine && r.ClusterUID == string(c.UID):
		return ours
	case r.ClusterUID == "", data == core.DataEmpty, former:
		return becomesOurs
	}
	return notOurs
}

// forgetFormer forgets of which history of a deleted Cluster's group the data are, when the present Cluster has had
// a primary: whoever is not of the same history as that is removed before.
func (m *recordFile) forgetFormer(log *slog.Logger) {
	if m.get().Former == (core.Lineage{}) {
		return
	}
	if err := m.change(func(r *volumeRecord) { r.Former = core.Lineage{} }); err != nil {
		log.Error("cannot remove the record of the group from which the data was adopted", "error", err)
	}
}

func (m *recordFile) claimIn(c *v1alpha1.Cluster, instance string, data core.DataState) claim {
	r := m.get()
	return r.claimIn(c, instance, data)
}

// adopt remembers whose data the volume holds, if a view is to be taken that makes it ours: what was promised for
// another cluster means nothing here, nor which Secrets were followed. It is told no more either: whoever was told
// that nothing is received would rely on it.
func (m *manager) adopt(c *v1alpha1.Cluster, may func(*state) bool) {
	var data core.DataState
	is := notOurs
	if get(m, func(s *state) bool { data = s.volume.data; return s.volume.locked && may(s) }) {
		is = m.record.claimIn(c, m.opt.Instance, data)
	}
	if is == ours && c.Status.EstablishedAt != nil {
		m.record.forgetFormer(m.log)
	}
	if is != becomesOurs {
		return
	}
	err := m.record.change(func(r *volumeRecord) {
		if r.claimIn(c, m.opt.Instance, data) != becomesOurs {
			return // by now
		}
		if r.ClusterUID != "" && data != core.DataEmpty {
			m.log.Info("this instance adopts the data of a deleted Cluster", "uid", r.ClusterUID)
		}
		kept, former := agent.Cached{}, core.Lineage{}
		if data != core.DataEmpty {
			kept, former = r.cached(), r.leaves()
		}
		*r = volumeRecord{ClusterUID: string(c.UID), Instance: m.opt.Instance, ServerID: m.opt.ServerID,
			Stage: r.Stage, groupHistory: groupHistory{Former: former}}
		r.setCached(kept)
	})
	if err != nil {
		m.log.Error("cannot record to which Cluster the data belongs", "error", err)
		return
	}
	m.update(func(s *state) {
		s.cluster.takesVolume(c)
		now := m.record.get()
		if s.volume.keepsPromise(now.promises()) == nil { // else it was given since
			s.volume.withheld = 0
		}
	})
}

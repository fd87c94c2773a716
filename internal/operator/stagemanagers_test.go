package operator

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	coordination "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/layout"
	"cnmsql.co/internal/observation"
)

// copyOf is a report that shares nothing with another.
func copyOf(r *core.Report) *core.Report {
	out := *r
	if r.Server != nil {
		server := *r.Server
		if r.Server.Replication != nil {
			replication := *r.Server.Replication
			server.Replication = &replication
		}
		out.Server = &server
	}
	return &out
}

// manage has each manager go by the Cluster's status, the primary's first, and the operator hear all of them, the
// primary's last: its word is then no older than what a replica has of it.
func (s *stage) manage() {
	s.Helper()
	s.group.settle(s)
	names, promoted := slices.Sorted(maps.Keys(s.pods)), s.promoted()
	slices.SortStableFunc(names, func(a, b string) int { return boolInt(b == promoted) - boolInt(a == promoted) })
	var reports []*core.Report
	before := map[string]string{}
	for _, name := range names {
		if r := s.managerOf(name); r != nil && s.c != nil {
			reports, before[name] = append(reports, r), textOf(r)
			s.goBy(r)
		}
	}
	for _, r := range reports {
		s.group.show(s, r)
		s.showReady(s.pods[r.Instance], isReady(r))
		s.moved = s.moved || textOf(r) != before[r.Instance]
	}
	slices.Reverse(names)
	for _, name := range names {
		if r := s.managerOf(name); r != nil {
			time.Sleep(time.Millisecond)
			s.r.says(name, *copyOf(r))
		}
	}
	s.r.fallSilent(func(instance string) bool { return !slices.Contains(names, instance) })
}

func boolInt(is bool) int {
	if is {
		return 1
	}
	return 0
}

func textOf(r *core.Report) string {
	text, _ := json.Marshal(r)
	return string(text)
}

// fallSilent has those managers be heard no more.
func (r *Reconciler) fallSilent(which func(instance string) bool) {
	r.streams.mu.Lock()
	defer r.streams.mu.Unlock()
	for instance, st := range r.streams.of[clusterKey] {
		if which(instance) {
			st.words.Lose()
		}
	}
}

// promoted is who may take writes by the Cluster's status; "" when nobody may.
func (s *stage) promoted() string {
	switch {
	case s.c == nil:
	case s.c.Status.GroupReplication != nil:
		return s.c.Status.CurrentPrimary
	case s.c.Status.Promotion != nil:
		return s.c.Status.Promotion.Instance
	}
	return ""
}

// managerOf is what an instance's manager says; nil when none runs. One that starts keeps what is on the volume.
func (s *stage) managerOf(name string) *core.Report {
	s.Helper()
	pod, claim := s.pods[name], s.claimOf(name)
	if pod == nil || claim == nil {
		return nil
	}
	r := s.disks[claim.UID]
	if r == nil {
		r = &core.Report{State: core.Empty, Data: core.DataEmpty}
		s.disks[claim.UID] = r
	}
	if r.PodUID != string(pod.UID) {
		r.Instance, r.PodUID, r.Boot, r.Node = name, string(pod.UID), string(pod.UID), pod.Spec.NodeName
		r.VolumeLocked, r.Leased, r.WritableEpoch, s.moved = true, true, 0, true
	}
	r.Terminating = pod.DeletionTimestamp != nil
	return r
}

// goBy has a manager do what follows from the Cluster's status.
func (s *stage) goBy(r *core.Report) {
	s.Helper()
	status, err := observation.StatusFrom(&s.c.Status)
	must(s.T, err)
	p := status.Promotion
	r.SeenEpoch, r.ViewEpoch = max(r.SeenEpoch, status.Epoch), max(r.ViewEpoch, status.Epoch)
	r.Generation, r.ClusterSize = s.c.Generation, len(status.Members)
	if status.Group != nil {
		s.group.goBy(s, r, &status)
		return
	}
	switch isPromoted := p != nil && p.Instance == r.Instance; {
	case p == nil, r.Data == core.DataScratch:
	case r.Data == core.DataEmpty && isPromoted && p.Proof == core.ProofBootstrap && status.EstablishedAt.IsZero():
		id := uuid.NewString()
		fill(r, gtid.MustParse(id+":1-10"), id)
	case r.Data == core.DataEmpty:
		r.State, r.Data = core.AwaitingClone, core.DataScratch
	case isPromoted:
		s.open(r, p)
	default:
		s.follow(r, p)
	}
}

// fill puts the cluster's data on the volume.
func fill(r *core.Report, holds gtid.Set, id string) {
	r.State, r.Data = core.Running, core.DataPopulated
	r.Server, r.Version = &core.Server{UUID: id, Executed: holds, SuperReadOnly: true}, "9.7.4"
}

// open has the one that is promoted take the Lease and writes, as soon as it may and has all that it must have.
func (s *stage) open(r *core.Report, p *core.Promotion) {
	s.Helper()
	if r.WritableEpoch == p.Epoch || !p.Permits(r.PodUID, r.Node, r.NoWritesBelow) ||
		!r.Server.Holds().Contains(p.RequiredGTID) {
		return
	}
	r.Server.Executed, r.Server.Replication, r.Server.SuperReadOnly = r.Server.Holds(), nil, false
	r.WritableEpoch, r.LastWritable = p.Epoch, p.Epoch
	lease := &coordination.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c-primary"}}
	if s.get(lease) {
		lease.Spec.HolderIdentity = &r.Instance
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, v1alpha1.AnnotationEpoch, strconv.FormatInt(p.Epoch, 10))
		s.update(lease)
	}
}

// follow has another one replicate from the one that is promoted, while that takes writes.
func (s *stage) follow(r *core.Report, p *core.Promotion) {
	s.Helper()
	source, mayReceive := s.managerOf(p.Instance), r.NoReceivingBelow <= p.Epoch
	sends := source != nil && source.WritableEpoch == p.Epoch
	r.WritableEpoch, r.Server.SuperReadOnly = 0, true
	r.Server.Replication = &core.Replication{SourceHost: layout.InstanceHost(p.Instance, "ns"), SQLRunning: true,
		IORunning: mayReceive && sends, IOConnecting: mayReceive && !sends}
	if !mayReceive {
		return
	}
	r.Withheld = nil
	if sends {
		r.Server.Executed = r.Server.Executed.Union(source.Server.Executed)
	}
}

func isReady(r *core.Report) bool {
	return r.State == core.Running && (r.WritableEpoch > 0 || r.Server.View().State == core.MemberOnline ||
		r.Server.Replication != nil && r.Server.Replication.IORunning)
}

// showReady has the kubelet say whether the Pod is ready.
func (s *stage) showReady(pod *corev1.Pod, is bool) {
	s.Helper()
	if is == observation.IsReady(pod) {
		return
	}
	status := corev1.ConditionFalse
	if is {
		status = corev1.ConditionTrue
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
	s.updateStatus(pod)
}

// obey has the managers carry out the orders that the operator has given them. It tells whether there were any.
func (s *stage) obey(effects []core.Effect) (any bool) {
	s.Helper()
	for _, e := range effects {
		switch e := e.(type) {
		case core.Demote:
			any = true
			s.order(e.Instance, e.Epoch, func(r *core.Report) {
				r.NoWritesBelow, r.WritableEpoch = max(r.NoWritesBelow, e.Epoch), 0
				r.Server.SuperReadOnly = true
			})
		case core.ReceivePromise:
			any = true
			s.order(e.Instance, e.Epoch, func(r *core.Report) {
				r.NoReceivingBelow = e.Epoch
				r.Withheld = &core.Withheld{Below: e.Epoch, Seconds: int(core.VouchWithheld.Seconds())}
			})
		case core.CloneFrom:
			any = true
			if donor := s.managerOf(e.Donor); donor != nil && donor.Server != nil {
				s.order(e.Instance, e.Epoch, func(r *core.Report) {
					fill(r, donor.Server.Executed, uuid.NewString())
				})
			}
		case core.Refresh: // all are heard in each turn
			any = true
		default:
			any = s.group.obey(s, e) || any
		}
	}
	return any
}

func (s *stage) order(instance string, epoch int64, do func(*core.Report)) {
	s.Helper()
	if r := s.managerOf(instance); r != nil && epoch >= r.SeenEpoch {
		r.SeenEpoch = epoch
		do(r)
	}
}

// claimOf is the claim of an instance; nil when there is none.
func (s *stage) claimOf(instance string) *corev1.PersistentVolumeClaim {
	s.Helper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: instance}}
	if !s.get(claim) {
		return nil
	}
	return claim
}

// uidOf is the UID of an instance's claim; "" when there is none.
func (s *stage) uidOf(instance string) types.UID {
	s.Helper()
	if claim := s.claimOf(instance); claim != nil {
		return claim.UID
	}
	return ""
}

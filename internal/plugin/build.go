package plugin

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/declared"
	"cnmsql.co/internal/layout"
	"cnmsql.co/internal/observation"
	"cnmsql.co/internal/resources"
)

// Facts are what a Report is made of.
type Facts struct {
	Cluster *v1alpha1.Cluster
	// Pods by instance; nil when they could not be read.
	Pods map[string]*corev1.Pod
	// ReadWrite is the -rw Service; nil when it is not there or could not be read.
	ReadWrite *corev1.Service
	// Live is what instances say of themselves now, by name.
	Live map[string]Live
	// Reference is the primary's word taken after all of Live. A replica held
	// against an older word of the primary shows transactions as errant that
	// were merely replicated in between.
	Reference *core.Report
	// LiveProblem is why no instance was asked.
	LiveProblem string
	// Backups of the Cluster, the newest last, and BackupsProblem why they are not known.
	Backups        []v1alpha1.Backup
	BackupsProblem string
	Now            time.Time
}

// Live is an instance's word, or why there is none.
type Live struct {
	Report  *core.Report
	Problem string
}

// Build puts Facts in words.
func Build(f Facts) Report {
	c, s := f.Cluster, &f.Cluster.Status
	r := Report{
		Namespace: c.Namespace, Name: c.Name, Created: c.CreationTimestamp.Time, Taken: f.Now,
		Phase: cmp.Or(s.Phase, "Unknown"), Diagnosis: s.Diagnosis,
		Primary: s.CurrentPrimary, PrimarySince: timeOf(s.CurrentPrimaryTimestamp),
		FailingSince: timeOf(s.PrimaryFailingSince),
		Happening:    cmp.Or(s.PhaseReason, "the operator has not said anything about this Cluster yet"),
		Operation:    operationOf(s.Operation), Promotion: promotionOf(s),
		Durability: durabilityOf(&f), Follows: followsOf(&f), Bounds: boundsOf(&f),
		Fenced: slices.Clone(s.FencedInstances),
		Wanted: int(c.Spec.Instances), Ready: int(s.ReadyInstances),
		NotOK: conditionsNotOK(s.Conditions), Connect: connect(&f),
	}
	if s.Blocked != nil {
		r.Blocked = core.Reason(s.Blocked.Reason)
	}
	for _, n := range s.Notices {
		r.Notices = append(r.Notices, core.Reason(n.Reason))
	}
	if is := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionHealthy); is != nil &&
		is.Status != metav1.ConditionTrue && !is.LastTransitionTime.IsZero() {
		r.NotHealthySince = &is.LastTransitionTime.Time
	}
	if c.DeletionTimestamp != nil {
		r.Phase = "Deleting"
		r.Happening = whatDeletionDoes(c)
	}
	for _, name := range instanceNames(s) {
		r.Instances = append(r.Instances, instanceOf(&f, name))
	}
	r.LiveProblem = liveProblem(&f, r.Instances)
	r.topology, r.Group = topologyOf(c), groupOf(c)
	r.Backups, r.Restore = backupsInShort(&f), restoreOf(&f)
	r.Writable, r.WritableBecause = topologyOf(c).writable(&f)
	r.Doubt = doubtOf(&f, &r)
	r.ToDo = advise(&f, &r)
	return r
}

// whatDeletionDoes tells what keeps a Cluster that is being deleted.
func whatDeletionDoes(c *v1alpha1.Cluster) string {
	is := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionArchiveStored)
	switch {
	case !controllerutil.ContainsFinalizer(c, v1alpha1.FinalizerStoredArchive):
		return "the Cluster was deleted; Kubernetes removes what belongs to it"
	case is == nil:
		return "the Cluster was deleted, and the operator removes its archive from the store before it goes"
	}
	return "the Cluster was deleted, and its archive goes before it does: " + is.Message
}

// instanceNames are all that the status tells of, in the order of their numbers.
func instanceNames(s *v1alpha1.ClusterStatus) []string {
	names := slices.Clone(s.InstanceNames)
	for _, in := range s.InstancesReported {
		if !slices.Contains(names, in.Name) {
			names = append(names, in.Name)
		}
	}
	slices.Sort(names)
	return names
}

// live is what an instance says of itself.
func (f *Facts) live(name string) *core.Report { return f.Live[name].Report }

func (f *Facts) topology() core.Topology { return declared.Topology(&f.Cluster.Spec) }

// holder is the instance that may take writes.
func (f *Facts) holder() string { return holderOf(&f.Cluster.Status) }

func writableByDiagnosis(f *Facts, primary string) (Writable, string) {
	diagnosis := f.Cluster.Status.Diagnosis
	because := fmt.Sprintf("the operator last reported %s as %s; the instance itself ", primary,
		cmp.Or(diagnosis, "missing"))
	if f.Live[primary].Problem != "" {
		because += "does not answer"
	} else {
		because += "was not asked"
	}
	switch d := core.Diagnosis(diagnosis); {
	case d.IsWell():
		if f.Live[primary].Problem != "" {
			return WritableUnknown, because + ": if the operator does not run, its report is old"
		}
		if odd := unseen(f); odd != "" {
			return WritableUnknown, because + ", and that report contradicts what is seen: " + odd
		}
		return WritableYes, because
	case d.IsUnreachable(), d == core.PrimaryLostTransactions, d == "":
		return WritableUnknown, because
	default:
		return WritableNo, because
	}
}

func (f *Facts) routedTo() string {
	if f.ReadWrite == nil {
		return ""
	}
	return resources.RoutedTo(f.ReadWrite)
}

func operationOf(o *v1alpha1.OperationStatus) *Operation {
	if o == nil {
		return nil
	}
	return &Operation{Kind: o.Kind, Step: o.Step, Meaning: meanings[core.Step(o.Step)], From: o.From, To: o.To,
		Reason: o.Reason, Started: timeOf(o.StartedAt), Deadline: timeOf(o.Deadline)}
}

func promotionOf(s *v1alpha1.ClusterStatus) *Promotion {
	p := s.Promotion
	if p == nil {
		return nil
	}
	return &Promotion{Epoch: p.Epoch, Instance: p.Instance, From: p.From, Proof: p.Proof, Evidence: p.Evidence,
		Granted: timeOf(p.GrantedAt), WritableSince: timeOf(p.WritableSince),
		Resumed: slices.ContainsFunc(s.LastOperations, func(o v1alpha1.PastOperation) bool {
			return p.GrantedAt.Before(o.StartedAt) && o.StartedAt.Before(p.WritableSince)
		})}
}

func durabilityOf(f *Facts) Durability {
	spec := &f.Cluster.Spec
	wish := observation.Durability(spec)
	d := Durability{Mode: string(wish.Mode), Wished: wish.Wished(int(spec.Instances))}
	for _, c := range f.Cluster.Status.Conditions {
		if c.Type == v1alpha1.ConditionDurable {
			d.Status, d.Message = string(c.Status), c.Message
		}
	}
	if p := f.Cluster.Status.Promotion; p != nil && p.LosslessSince > 0 {
		d.LosslessSince, d.Guaranteed = p.LosslessSince, int(p.RequiredAcks)
	}
	if r := f.live(f.holder()); r != nil && r.Server != nil && r.Server.SemiSync.SourceEnabled {
		d.Acks, d.Attached = &r.Server.SemiSync.Acks, &r.Server.SemiSync.Clients
	}
	return d
}

// boundsOf tells why a failover may be refused that would be possible.
func boundsOf(f *Facts) *Bounds {
	if f.Cluster.Spec.FailoverPolicy == nil {
		return nil
	}
	p := observation.Policy(&f.Cluster.Spec)
	b := &Bounds{TransactionsBehind: p.MaxTransactionsBehind, Preferred: p.Preferred,
		LastFailover: timeOf(f.Cluster.Status.LastFailoverTimestamp)}
	if p.MaxReplicationLag > 0 {
		b.Lag = p.MaxReplicationLag.String()
	}
	if p.MinTimeBetweenFailover > 0 {
		b.Between = p.MinTimeBetweenFailover.String()
		if last := b.LastFailover; last != nil && f.Now.Before(last.Add(p.MinTimeBetweenFailover)) {
			until := last.Add(p.MinTimeBetweenFailover)
			b.NotBefore = &until
		}
	}
	return b
}

// badWhenTrue are the conditions that are well when they are False.
var badWhenTrue = []string{v1alpha1.ConditionDegraded, v1alpha1.ConditionProgressing,
	v1alpha1.ConditionSwitchoverReturned}

// forTools are the conditions that tell other programs what the phase tells people.
var forTools = []string{v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled}

func conditionsNotOK(all []metav1.Condition) []Condition {
	var out []Condition
	for _, c := range all {
		if slices.Contains(forTools, c.Type) {
			continue
		}
		good := metav1.ConditionTrue
		if slices.Contains(badWhenTrue, c.Type) {
			good = metav1.ConditionFalse
		}
		if c.Status != good && c.Reason != v1alpha1.ReasonAsynchronous { // which is told as the durability
			out = append(out, Condition{Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message})
		}
	}
	return out
}

// services are the addresses that the spec asks for; where -rw leads is what is.
func services(f *Facts) []Service {
	var out []Service
	for _, s := range resources.Services(f.Cluster, f.routedTo()) {
		to := Service{Address: fmt.Sprintf("%s.%s.svc:%d", s.Name, s.Namespace, layout.MySQLPort)}
		switch {
		case resources.LeadsToPrimary(s):
			to.For, to.RoutedTo = "reads and writes, on the primary", resources.RoutedTo(s)
		case s.Spec.Selector[v1alpha1.LabelRole] != "":
			to.For = "reads, on replicas"
		default:
			to.For = "reads, on every instance"
		}
		out = append(out, to)
	}
	return out
}

func connect(f *Facts) Connect {
	c, names := f.Cluster, resources.Names(f.Cluster.Name)
	return Connect{
		Services:  services(f),
		AppSecret: names.AppSecret(),
		Commands: []string{
			fmt.Sprintf("kubectl cnmsql mysql %s -n %s", c.Name, c.Namespace),
			fmt.Sprintf("kubectl port-forward -n %s service/%s %d", c.Namespace, names.ReadWrite(), layout.MySQLPort),
		},
	}
}

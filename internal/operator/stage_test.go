package operator

import (
	"errors"
	"slices"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/pki"
	"cnmsql.co/internal/resources"
)

// stage is what is around an operator in a story: Kubernetes, and the managers of the instances. Both do at once what
// there is to do, between one look of the operator and the next.
type stage struct {
	*testing.T
	server *flaky
	r      *Reconciler
	// c is the Cluster as it is now; nil when there is none, and uid then is that of the last one.
	c   *v1alpha1.Cluster
	uid types.UID
	// pods are those of the instances, as they were seen last, and disks what the manager of each claim's volume
	// says, by the claim's UID.
	pods  map[string]*corev1.Pod
	disks map[types.UID]*core.Report
	// replicates is how the instances do.
	replicates replicates
	// group is the one that the instances are members of, if they are of any.
	group *group
	// moved: Kubernetes or a manager has done something.
	moved bool
	// failedNow: the call that fails did so in the last look.
	failedNow bool
	rules     rules
	// askedAgain is how often a human had to ask again for the same, each time in an epoch more.
	askedAgain int64
	// before is what there was when the story began.
	before moment
}

// moment is what is held against what there is later.
type moment struct {
	claims    map[string]types.UID
	authority pki.Kept
}

// setting is what stories begin with.
type setting struct {
	replicates replicates
	objects    []client.Object
	disks      map[types.UID]*core.Report
	group      group
}

func newStage(t *testing.T, from setting) *stage {
	s := &stage{T: t, pods: map[string]*corev1.Pod{}, disks: map[types.UID]*core.Report{},
		replicates: from.replicates, group: from.group.copy()}
	var objects []client.Object
	for _, obj := range from.objects {
		objects = append(objects, obj.DeepCopyObject().(client.Object))
	}
	for claim, says := range from.disks {
		s.disks[claim] = copyOf(says)
	}
	s.server = newFlaky(t, objects...)
	s.startOperator()
	s.see()
	s.rules = newRules(s)
	return s
}

// startOperator starts one that knows nothing yet, in the place of the former.
func (s *stage) startOperator() {
	if s.r != nil {
		s.r.streams.ForgetCluster(clusterKey)
	}
	s.r = operatorOf(s.T, s.server)
	s.r.observer.wanted = s.r.actor.wanted
	s.r.Recorder = teller{s}
}

// all are the objects of all kinds that the operator makes, by kind and name.
func (s *stage) all() (out []client.Object) {
	s.Helper()
	for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.PersistentVolumeClaimList{},
		&corev1.ServiceList{}, &corev1.SecretList{}, &corev1.ServiceAccountList{}, &rbacv1.RoleList{},
		&rbacv1.RoleBindingList{}, &policyv1.PodDisruptionBudgetList{}, &coordination.LeaseList{}} {
		must(s.T, s.server.raw.List(s.Context(), list, client.InNamespace("ns")))
		must(s.T, meta.EachListItem(list, func(o runtime.Object) error {
			out = append(out, o.DeepCopyObject().(client.Object))
			return nil
		}))
	}
	return out
}

// setting is what there is now.
func (s *stage) setting() setting {
	s.Helper()
	out := setting{replicates: s.replicates, objects: append(s.all(), s.c), disks: s.disks, group: *s.group}
	var nodes corev1.NodeList
	var spaces corev1.NamespaceList
	var classes storagev1.StorageClassList
	for _, list := range []client.ObjectList{&nodes, &spaces, &classes} {
		must(s.T, s.server.raw.List(s.Context(), list))
		must(s.T, meta.EachListItem(list, func(o runtime.Object) error {
			out.objects = append(out.objects, o.DeepCopyObject().(client.Object))
			return nil
		}))
	}
	return out
}

// see looks at the Cluster, past the operator.
func (s *stage) see() {
	s.Helper()
	s.c = &v1alpha1.Cluster{}
	err := s.server.raw.Get(s.Context(), clusterKey, s.c)
	if must(s.T, client.IgnoreNotFound(err)); err != nil {
		s.c = nil
		return
	}
	s.uid = s.c.UID
}

// change changes the Cluster's spec and metadata, as a user does, and wish its status.
func (s *stage) change(do func(*v1alpha1.Cluster)) {
	s.Helper()
	s.see()
	before := s.c.DeepCopy()
	if do(s.c); !apiequality.Semantic.DeepEqual(before.Spec, s.c.Spec) {
		s.c.Generation++
	}
	s.update(s.c)
}

func (s *stage) wish(do func(*v1alpha1.ClusterStatus)) {
	s.Helper()
	s.see()
	do(&s.c.Status)
	s.updateStatus(s.c)
}

// get reads the object of that name, past the operator, and tells whether there is one.
func (s *stage) get(obj client.Object) bool {
	s.Helper()
	err := s.server.raw.Get(s.Context(), client.ObjectKeyFromObject(obj), obj)
	must(s.T, client.IgnoreNotFound(err))
	return err == nil
}

func (s *stage) update(obj client.Object) {
	s.Helper()
	s.moved = true
	must(s.T, s.server.raw.Update(s.Context(), obj))
}

func (s *stage) updateStatus(obj client.Object) {
	s.Helper()
	s.moved = true
	must(s.T, s.server.raw.Status().Update(s.Context(), obj))
}

func (s *stage) delete(obj client.Object) {
	s.Helper()
	s.moved = true
	must(s.T, client.IgnoreNotFound(s.server.raw.Delete(s.Context(), obj)))
}

// untilQuiet plays until nothing more is to be done.
func (s *stage) untilQuiet() {
	s.Helper()
	for quiet, looks := 0, 0; quiet < 2; looks++ {
		if looks > 60 {
			s.Fatalf("there is no end: the Cluster is %s: %s", s.c.Status.Phase, s.c.Status.PhaseReason)
		}
		s.turn()
		wait, isDone := s.look()
		if quiet++; s.moved || !isDone {
			quiet = 0
		}
		time.Sleep(wait)
	}
}

// look has the operator look once. It tells when the operator wants to look again, and whether it has nothing to do.
func (s *stage) look() (wait time.Duration, isDone bool) {
	s.Helper()
	hadFailed := s.server.hasFailed()
	s.r.clusters.of(clusterKey).effects = nil // so that those of this look can be told
	result, err := s.r.Reconcile(quietly(s.T), ctrl.Request{NamespacedName: clusterKey})
	isOrdered, was := s.obey(s.r.clusters.of(clusterKey).effects), s.c
	s.failedNow = s.server.hasFailed() && !hadFailed
	s.see()
	hasGone := was != nil && s.c == nil
	isMeantToFail := errors.Is(err, errFlaky) || apierrors.IsConflict(err) || hasGone && apierrors.IsNotFound(err)
	if err != nil && !isMeantToFail {
		s.Fatal(err)
	}
	isUnderWay := isOrdered || hasGone || s.c != nil && s.c.Status.Operation != nil
	s.rules.check(s)
	if s.server.hasDied() {
		s.startOperator()
		err = errFlaky
	}
	switch {
	case err != nil:
		return time.Second, false
	case result.RequeueAfter == 0:
		return time.Second, !isUnderWay
	}
	return min(max(result.RequeueAfter, 100*time.Millisecond), core.LookAgain), !isUnderWay &&
		result.RequeueAfter >= core.LookAgain
}

// turn has Kubernetes and the managers do what there is to do, and the operator hear of it.
func (s *stage) turn() {
	s.Helper()
	s.moved = false
	s.see()
	s.collect()
	s.runPods()
	s.runClaims()
	s.manage()
}

// collect does what Kubernetes' garbage collector does, and whoever holds a Cluster that is deleted.
func (s *stage) collect() {
	s.Helper()
	if s.c != nil && s.c.DeletionTimestamp != nil {
		var claims corev1.PersistentVolumeClaimList
		must(s.T, s.server.raw.List(s.Context(), &claims, client.InNamespace("ns")))
		if len(resources.Unfreed(s.c, claims.Items)) == 0 {
			s.c.Finalizers = nil
			s.update(s.c)
			s.see()
		}
	}
	if s.c != nil {
		return
	}
	for _, obj := range s.all() {
		isOwned := func(o metav1.OwnerReference) bool { return o.UID == s.uid }
		if !slices.ContainsFunc(obj.GetOwnerReferences(), isOwned) {
			continue
		}
		if len(obj.GetFinalizers()) > 0 {
			obj.SetFinalizers(nil)
			s.update(obj)
		}
		s.delete(obj)
	}
}

// runPods has each new Pod run on a node of its own, and notes those that have ended.
func (s *stage) runPods() {
	s.Helper()
	var all corev1.PodList
	must(s.T, s.server.raw.List(s.Context(), &all, client.InNamespace("ns"),
		client.MatchingLabels{v1alpha1.LabelCluster: "c"}))
	now := map[string]*corev1.Pod{}
	for i := range all.Items {
		pod := &all.Items[i]
		now[pod.Name] = pod
		if pod.Spec.NodeName != "" {
			continue
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-of-" + string(pod.UID)}}
		must(s.T, s.server.raw.Create(s.Context(), node))
		pod.Spec.NodeName = node.Name
		s.update(pod)
		pod.Status = aPod(pod.Name, "", "").Status
		pod.Status.PodIP = ""
		s.updateStatus(pod)
	}
	for name, was := range s.pods {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: was.Spec.NodeName}}
		if is := now[name]; is != nil && is.UID == was.UID || !s.get(node) {
			continue
		}
		was.Status.Phase = corev1.PodSucceeded
		was.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
		s.r.observer.ended.note(was)
	}
	s.pods = now
}

const inUse = "kubernetes.io/pvc-protection"

// runClaims gives each claim a volume as large as it asks for, and removes one that is deleted when no Pod has it.
func (s *stage) runClaims() {
	s.Helper()
	var all corev1.PersistentVolumeClaimList
	must(s.T, s.server.raw.List(s.Context(), &all, client.InNamespace("ns"),
		client.MatchingLabels{v1alpha1.LabelCluster: "c"}))
	for i := range all.Items {
		claim := &all.Items[i]
		switch has := claim.Status.Capacity.Storage(); {
		case claim.DeletionTimestamp != nil && s.pods[claim.Name] == nil:
			claim.Finalizers = nil
			s.update(claim)
		case claim.DeletionTimestamp == nil && has.Cmp(*claim.Spec.Resources.Requests.Storage()) < 0:
			claim.Finalizers = []string{inUse}
			s.update(claim)
			claim.Status.Phase, claim.Status.Capacity = corev1.ClaimBound, claim.Spec.Resources.Requests
			s.updateStatus(claim)
		}
	}
}

package operator

import (
	"bytes"
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
)

// prepareCase is what was found at, and whether it is looked at again.
type prepareCase struct {
	says   *core.Report
	change func(*v1alpha1.Cluster)
	at     time.Time
	// changed: one of the cluster's objects was, since.
	changed, noLease bool
	looks            bool
}

func prepareCases() map[string]prepareCase {
	writes, stopped := core.Report{State: core.Running, WritableEpoch: 1}, core.Report{State: core.Stopped}
	moment := time.Now().Add(-time.Second)
	tooLong, farTooLong := time.Now().Add(-preparedLife-time.Second), time.Now().Add(-restingLife-time.Second)
	return map[string]prepareCase{
		"all is well":                            {says: &writes, at: moment},
		"all is well, and an object was changed": {says: &writes, at: moment, changed: true, looks: true},
		"all is well, and it was too long ago":   {says: &writes, at: farTooLong, looks: true},
		"it has one instance more": {says: &writes, at: moment, looks: true,
			change: func(c *v1alpha1.Cluster) { c.Status.InstanceNames = append(c.Status.InstanceNames, "c-9") }},
		"it counts as established no more": {says: &writes, at: moment, looks: true,
			change: func(c *v1alpha1.Cluster) { c.Status.EstablishedAt = nil }},
		"the primary has stopped":  {says: &stopped, at: moment, changed: true},
		"the primary is not heard": {at: moment, changed: true},
		"a switchover is under way": {says: &writes, at: moment, changed: true,
			change: func(c *v1alpha1.Cluster) { c.Status.Operation = &v1alpha1.OperationStatus{Kind: "Switchover"} }},
		"no primary was chosen yet": {at: moment, changed: true, looks: true,
			change: func(c *v1alpha1.Cluster) { c.Status.Promotion = nil }},
		"the spec is another": {says: &stopped, at: moment, looks: true,
			change: func(c *v1alpha1.Cluster) { c.Generation++ }},
		"another authority is asked for": {says: &writes, at: moment, looks: true,
			change: func(c *v1alpha1.Cluster) {
				c.Annotations = map[string]string{v1alpha1.AnnotationNewAuthority: "now"}
			}},
		"its Lease was deleted":                            {says: &stopped, at: moment, noLease: true, looks: true},
		"the primary has stopped, and it was too long ago": {says: &stopped, at: tooLong, changed: true, looks: true},
	}
}

// TestAChangeOfThePrimaryLooksAtNothingFirst: what a cluster needs besides its instances is
// looked at when it was changed, and seldom else, and not while nobody takes writes.
func TestAChangeOfThePrimaryLooksAtNothingFirst(t *testing.T) {
	for name, tc := range prepareCases() {
		t.Run(name, func(t *testing.T) {
			a, c := newAPI(t), aCluster()
			r := newTestReconciler(t, a, a)
			ca := anAuthority(t)
			r.state(c).ready = preparation{ca: ca, of: preparedFor(c), at: tc.at}
			if tc.changed {
				its := metav1.ObjectMeta{Namespace: "ns", Labels: map[string]string{v1alpha1.LabelCluster: "c"}}
				r.clusters.changesAre().Update(event.UpdateEvent{ObjectNew: &corev1.Secret{ObjectMeta: its}})
			}
			version := "7"
			if tc.noLease {
				version = ""
			}
			r.observer.leases.note(leaseKey(clusterKey), version)
			if tc.says != nil {
				r.says("c-1", *tc.says)
			}
			if tc.change != nil {
				tc.change(c)
			}
			got, _ := r.prepare(t.Context(), c)
			if looked := a.gets > 0; looked != tc.looks {
				t.Errorf("asked the API server %d times", a.gets)
			}
			if !tc.looks && (got != ca || r.state(c).ready.at != tc.at) {
				t.Error("what was found a moment ago is not what is used, or counts as found now")
			}
		})
	}
}

// TestAnOperatorThatStartsHearsInstancesThoughTheirAuthorityCannotBeWritten: a label that the API
// server refuses, or a webhook that is down, hinders a write to the Secret of the authority. What
// is in it is good all the same. One that was never written is nobody's.
func TestAnOperatorThatStartsHearsInstancesThoughTheirAuthorityCannotBeWritten(t *testing.T) {
	refused := apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "c-ca", nil)
	isRefused := false
	server := newFake(t).WithReturnManagedFields().WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(ctx context.Context, w client.WithWatch, obj runtime.ApplyConfiguration,
			o ...client.ApplyOption) error {
			if isRefused {
				return refused
			}
			return w.Apply(ctx, obj, o...)
		}}).Build()
	c := aCluster()
	isRefused = true
	if ca, problem := newTestReconciler(t, server, server).prepare(t.Context(), c); ca != nil || problem == nil {
		t.Errorf("an authority that nobody has: %v, %v", ca != nil, problem)
	}
	isRefused = false
	first, err := newPrerequisites(server, server).authority(t.Context(), c, new([]core.Problem))
	must(t, err)
	isRefused = true
	c = changed(c)
	ca, problem := newTestReconciler(t, server, server).prepare(t.Context(), c)
	if problem == nil || problem.Reason != core.ProblemPrerequisites {
		t.Errorf("what hinders it is not told: %v", problem)
	}
	if ca == nil || !bytes.Equal(ca.Trust(), first.Trust()) {
		t.Error("it has not the authority that is in the Secret: it makes no stream to an instance, and gives no order")
	}
}

// TestADamagedTrustIsGivenToNobody: the Secret of the authority has another ca.crt by now. The
// instances are heard by the certificate that they have, and keep it.
func TestADamagedTrustIsGivenToNobody(t *testing.T) {
	server := newFake(t).WithReturnManagedFields().Build()
	c := aCluster()
	c.Status.InstanceNames = []string{"c-1"}
	if ca, problem := newTestReconciler(t, server, server).prepare(t.Context(), c); ca == nil || problem != nil {
		t.Fatalf("%v", problem)
	}
	leaf := secretOf(t, server, c, resources.TLSSecret("c-1"))
	damaged := secretOf(t, server, c, resources.Names("c").CASecret())
	damaged.Data[resources.KeyCA] = []byte("garbage")
	must(t, server.Update(t.Context(), damaged))
	ca, problem := newTestReconciler(t, server, server).prepare(t.Context(), c)
	if ca == nil || problem == nil || problem.Reason != core.ProblemAuthorityBroken {
		t.Errorf("it has an authority: %v, and says %v", ca != nil, problem)
	}
	if is := secretOf(t, server, c, leaf.Name); is.ResourceVersion != leaf.ResourceVersion {
		t.Errorf("the instance has been given %s", is.Data[resources.KeyCA])
	}
	if is := secretOf(t, server, c, damaged.Name); string(is.Data[resources.KeyCA]) != "garbage" {
		t.Error("the Secret was replaced in silence")
	}
}

package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	coordination "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/whatif"
)

// rehearsal is a healthy cluster with all its objects.
func rehearsal(t *testing.T, change func(*Facts)) (*scene, *guesser) {
	t.Helper()
	f := healthy()
	p := f.Cluster.Status.Promotion
	p.PodUID, p.RequiredAcks, p.LosslessSince, p.Size = "uid-1", 1, 2, 3
	for _, name := range f.Cluster.Status.InstanceNames {
		f.live(name).Server.SemiSync.ReplicaEnabled = name != "demo-1"
	}
	f.live("demo-1").Server.SemiSync.Blocks = true
	return rehearsalOf(t, f, change)
}

func rehearsalOf(t *testing.T, f *Facts, change func(*Facts)) (*scene, *guesser) {
	t.Helper()
	f.Cluster.Status.Conditions = nil
	holder := "demo-1"
	objs := []client.Object{&coordination.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "demo-primary",
		Annotations: map[string]string{v1alpha1.AnnotationEpoch: "4"}},
		Spec: coordination.LeaseSpec{HolderIdentity: &holder}}}
	for _, name := range f.Cluster.Status.InstanceNames {
		pod, n := podOf(name), name[len(name)-1:]
		pod.UID = types.UID("uid-" + n)
		objs = append(objs, pod, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n" + n}},
			&corev1.PersistentVolumeClaim{ObjectMeta: pod.ObjectMeta,
				Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}})
		r := f.live(name)
		r.VolumeLocked, r.PodUID = true, "uid-"+n
	}
	if change != nil {
		change(f)
	}
	s := newScene(t, f.Cluster, nil, objs...)
	s.managers(f)
	return s, &guesser{s.caller}
}

func TestTheAnswerComesFirst(t *testing.T) {
	s, g := rehearsal(t, nil)
	if err := g.guess(t.Context(), []string{"1"}, whatif.NodeLost, ""); err != nil {
		t.Fatal(err)
	}
	golden(t, "whatif-node-lost.txt", s.out.String())
}

func TestABlockedFailoverIsToldBeforeItHappens(t *testing.T) {
	s, g := rehearsal(t, nil)
	if err := g.guess(t.Context(), []string{"demo-1", "demo-2"}, whatif.NodeLost, ""); err != nil {
		t.Fatal(err)
	}
	s.mustSay("Then        NOBODY is promoted in the place of demo-1 (NoProof)")
}

func TestASilentPrimaryIsNotTakenForDead(t *testing.T) {
	s, g := rehearsal(t, func(f *Facts) { f.Live["demo-1"] = Live{Problem: "no answer within 3s"} })
	if err := g.guess(t.Context(), []string{"demo-2"}, whatif.NodeLost, ""); err != nil {
		t.Fatal(err)
	}
	s.mustSay("whether demo-1 accepts writes is unknown, before and after")
	s.mustSay("Assumed     demo-1 does not answer now, and is treated as silent")
}

func TestAnOperatorOnALostNodeIsTold(t *testing.T) {
	s, g := rehearsal(t, nil)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "cnmsql-system", Name: "op", Labels: map[string]string{
		"app.kubernetes.io/name": "cnmsql", "app.kubernetes.io/component": "operator"}},
		Spec: corev1.PodSpec{NodeName: "n1"}}
	if err := s.client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if err := g.guess(t.Context(), []string{"1"}, whatif.NodeLost, ""); err != nil {
		t.Fatal(err)
	}
	s.mustSay("cnmsql-system/op runs on n1, and if it leads, another takes its place within 10 to 15 s")
}

func TestALossIsCounted(t *testing.T) {
	s, g := rehearsal(t, func(f *Facts) {
		f.Cluster.Spec.MySQL.SemiSync = nil
		f.Cluster.Status.Promotion.LosslessSince, f.Cluster.Status.Promotion.RequiredAcks = 0, 0
		f.live("demo-2").Server.Executed = set(uuid1 + ":1-995")
	})
	if err := g.guess(t.Context(), []string{"demo-1"}, whatif.MysqldDown, ""); err != nil {
		t.Fatal(err)
	}
	s.mustSay("Then        demo-2 is promoted after less than a second (epoch 5), in the place of demo-1")
	s.mustSay("5 transactions as of now, which demo-1 has and demo-2 does not; commits wait for no replica " +
		"(asynchronous replication)")
}

func TestTheAnswerForPrograms(t *testing.T) {
	s, g := rehearsal(t, nil)
	if err := g.guess(t.Context(), []string{"1"}, whatif.PodDeleted, "json"); err != nil {
		t.Fatal(err)
	}
	var a whatif.Answer
	if err := json.Unmarshal([]byte(s.out.String()), &a); err != nil || a.Outcome != whatif.Promoted ||
		a.Losses == nil || !a.Losses.Nothing {
		t.Errorf("%v %s", err, s.out.String())
	}
}

func TestWhatMayNotBeReadIsUnknownAndTold(t *testing.T) {
	s, g := rehearsal(t, nil)
	g.client = interceptor.NewClient(s.client, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, is := list.(*corev1.NodeList); is {
				return errors.New("nodes is forbidden")
			}
			return c.List(ctx, list, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object,
			opts ...client.GetOption) error {
			if _, is := obj.(*coordination.Lease); is {
				return errors.New("leases is forbidden")
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	if err := g.guess(t.Context(), []string{"1"}, whatif.NodeLost, ""); err != nil {
		t.Fatal(err)
	}
	s.mustSay("Nodes could not be read (nodes is forbidden), and are taken for unknown")
	s.mustSay("the Lease demo-primary could not be read (leases is forbidden), and is taken for held by the primary")
	s.mustSay("demo-2 is promoted after about 2 s")
}

func TestWhatIfOfAnUnknownInstanceListsThoseThereAre(t *testing.T) {
	_, g := rehearsal(t, nil)
	mustFail(t, g.guess(t.Context(), []string{"demo-8"}, whatif.NodeLost, ""), "it has: demo-1, demo-2, demo-3")
}

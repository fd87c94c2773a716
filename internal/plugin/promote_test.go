package plugin

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/layout"
)

// scene is a promoter with a fake API server, whose operator answers when the
// plugin has begun to watch.
type scene struct {
	*promoter
	t   *testing.T
	out strings.Builder
}

func newScene(t *testing.T, c *v1alpha1.Cluster, operator func(*scene), others ...client.Object) *scene {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{t: t}
	watched := false
	fakes := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(others, c)...).WithStatusSubresource(
		c).WithInterceptorFuncs(interceptor.Funcs{
		Watch: func(ctx context.Context, cl client.WithWatch, list client.ObjectList,
			opts ...client.ListOption) (watch.Interface, error) {
			w, err := cl.Watch(ctx, list, opts...)
			if operator != nil && !watched {
				watched = true
				go operator(s)
			}
			return w, err
		},
	}).Build()
	s.promoter = &promoter{caller{client: fakes, in: strings.NewReader(""), out: &s.out, now: time.Now,
		key: types.NamespacedName{Namespace: c.Namespace, Name: c.Name},
		ask: func(context.Context, string) (word, error) { return word{}, errors.New("no answer") }}}
	return s
}

// decide writes a status as the operator does.
func (s *scene) decide(change func(*v1alpha1.ClusterStatus)) {
	c := s.cluster()
	change(&c.Status)
	if err := s.client.Status().Update(context.Background(), c); err != nil {
		s.t.Error(err)
	}
}

func (s *scene) cluster() *v1alpha1.Cluster {
	c := &v1alpha1.Cluster{}
	if err := s.client.Get(context.Background(), s.key, c); err != nil {
		s.t.Error(err)
	}
	return c
}

func (s *scene) warn(reason core.Reason, note string) {
	e := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace,
		Name: string("demo." + strings.ToLower(string(reason)))}, EventTime: metav1.NowMicro(),
		Type: corev1.EventTypeWarning, Reason: string(reason), Note: note,
		Regarding: corev1.ObjectReference{Kind: "Cluster", Name: s.key.Name}}
	if err := s.client.Create(context.Background(), e); err != nil {
		s.t.Error(err)
	}
}

func (s *scene) run(instance string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return s.promote(ctx, instance)
}

func (s *scene) mustSay(text string) {
	s.t.Helper()
	if !strings.Contains(s.out.String(), text) {
		s.t.Errorf("it does not say %q, but:\n%s", text, s.out.String())
	}
}

func mustFail(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("want an error with %q, got %v", text, err)
	}
}

func switchOver(s *scene) {
	s.decide(func(st *v1alpha1.ClusterStatus) {
		st.Phase, st.PhaseReason = string(core.PhaseSwitchover), "making demo-1 read-only"
		st.Operation = &v1alpha1.OperationStatus{Kind: "Switchover", Step: "Demote", From: "demo-1", To: "demo-2"}
	})
	s.decide(func(st *v1alpha1.ClusterStatus) {
		st.Phase, st.PhaseReason, st.Operation = string(core.PhaseHealthy), "demo-2 takes writes", nil
		st.CurrentPrimary, st.PrimaryEpoch = "demo-2", 5
		st.Promotion = &v1alpha1.PromotionStatus{Epoch: 5, Instance: "demo-2", Proof: "ManagerFenced"}
	})
}

func TestPromoteFollowsUntilTheInstanceIsPrimary(t *testing.T) {
	s := newScene(t, healthy().Cluster, switchOver)
	if err := s.run("2", 10*time.Second); err != nil {
		t.Fatal(err)
	}
	s.mustSay("Asked for demo-2 as primary of demo, after demo-1.")
	s.mustSay("Switchover, Demote: making demo-1 read-only")
	s.mustSay("demo-2 is the primary of demo (epoch 5)")
	if c := s.cluster(); c.Status.TargetPrimary != "demo-2" || c.Status.TargetPrimaryTimestamp == nil {
		t.Errorf("the wish was not written: %+v", c.Status)
	}
}

func TestPromoteTellsWhyTheOperatorRefused(t *testing.T) {
	s := newScene(t, healthy().Cluster, func(s *scene) {
		s.decide(func(st *v1alpha1.ClusterStatus) { st.TargetPrimary = "demo-1" })
		s.warn(core.RefusalTargetNotReplicating, "switchover to demo-2 refused: it does not replicate from demo-1")
	})
	mustFail(t, s.run("demo-2", 10*time.Second),
		"TargetNotReplicating: switchover to demo-2 refused: it does not replicate")
}

func TestPromoteDoesNotTakeOldEventsForTheReason(t *testing.T) {
	s := newScene(t, healthy().Cluster, func(s *scene) {
		s.decide(func(st *v1alpha1.ClusterStatus) { st.TargetPrimary = "demo-1" })
	})
	s.warn(core.RefusalDeadline, "an old story")
	err := s.run("demo-2", 10*time.Second)
	mustFail(t, err, "status.targetPrimary was set to demo-1")
	if strings.Contains(err.Error(), "old story") {
		t.Error(err)
	}
}

func TestPromoteThatNobodyAnswersTellsHowToWithdraw(t *testing.T) {
	s := newScene(t, healthy().Cluster, nil)
	mustFail(t, s.run("demo-2", 300*time.Millisecond), "to withdraw it: kubectl cnmsql promote demo demo-1 -n shop")
}

func TestPromoteOfThePrimaryDoesNothing(t *testing.T) {
	s := newScene(t, healthy().Cluster, nil)
	if err := s.run("demo-1", time.Second); err != nil {
		t.Fatal(err)
	}
	s.mustSay("demo-1 is the primary of demo already.")
	if s.cluster().Status.TargetPrimaryTimestamp != nil {
		t.Error("it was written")
	}
}

func TestPromoteOfThePrimaryWithdrawsAnotherWish(t *testing.T) {
	c := healthy().Cluster
	c.Status.TargetPrimary = "demo-3"
	s := newScene(t, c, nil)
	if _, err := s.request(context.Background(), "demo-1"); err != nil {
		t.Fatal(err)
	}
	if got := s.cluster().Status.TargetPrimary; got != "demo-1" {
		t.Errorf("targetPrimary is %s", got)
	}
}

func TestPromoteOfAnUnknownInstanceListsThoseThereAre(t *testing.T) {
	s := newScene(t, healthy().Cluster, nil)
	mustFail(t, s.run("7", time.Second), "no instance demo-7; it has: demo-1, demo-2, demo-3")
	mustFail(t, s.run("-1", time.Second), "no instance -1; it has: demo-1, demo-2, demo-3")
}

func TestPromoteOfAnUnknownClusterTellsHowToListThem(t *testing.T) {
	s := newScene(t, healthy().Cluster, nil)
	s.key.Name = "other"
	mustFail(t, s.run("1", time.Second), "kubectl cnmsql status -A")
}

func TestPromoteWarnsOfADivergedInstance(t *testing.T) {
	s := newScene(t, diverged().Cluster, nil)
	if _, err := s.request(context.Background(), "2"); err != nil {
		t.Fatal(err)
	}
	s.mustSay("Warning: demo-2 holds transactions that the primary does not have")
}

func TestTheClientIsGivenNoPassword(t *testing.T) {
	got := strings.Join(clientCommand("app", []string{"-e", "select 1"}), " ")
	if got != layout.Binary+" instance client --user app -- -e select 1" {
		t.Error(got)
	}
}

func TestWhoIsPreferredIsSaidToTakeOverAgain(t *testing.T) {
	const again = "Warning: demo-1 is preferred to it (spec.failoverPolicy.preferredPrimary), and without a " +
		"primaryStabilityWindow takes over again within seconds"
	for name, r := range map[string]struct {
		policy *v1alpha1.FailoverPolicy
		says   bool
	}{
		"nobody is preferred":   {nil, false},
		"another is":            {&v1alpha1.FailoverPolicy{PreferredPrimary: []string{"demo-1"}}, true},
		"it is, after another":  {&v1alpha1.FailoverPolicy{PreferredPrimary: []string{"demo-1", "demo-2"}}, true},
		"it is before another":  {&v1alpha1.FailoverPolicy{PreferredPrimary: []string{"demo-2", "demo-1"}}, false},
		"who is does not exist": {&v1alpha1.FailoverPolicy{PreferredPrimary: []string{"demo-7"}}, false},
		"only after an hour then": {&v1alpha1.FailoverPolicy{PreferredPrimary: []string{"demo-1"},
			PrimaryStabilityWindow: &metav1.Duration{Duration: time.Hour}}, false},
	} {
		c := healthy().Cluster
		c.Spec.FailoverPolicy = r.policy
		s := newScene(t, c, nil)
		if _, err := (&promoter{s.caller}).request(t.Context(), "2"); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(s.out.String(), again) != r.says {
			t.Errorf("%s: it says %q", name, s.out.String())
		}
	}
}

// TestARequestDuringAFailoverThatWaitsNamesTheWayOut has the operator wait for another instance than the one that
// was asked for: the request cannot redirect it, and what can is named.
func TestARequestDuringAFailoverThatWaitsNamesTheWayOut(t *testing.T) {
	f := failover()
	f.Cluster.Status.Operation = &v1alpha1.OperationStatus{Kind: string(core.OperationFailover),
		Step: string(core.StepPromote), From: "demo-1", To: "demo-2"}
	f.Cluster.Status.PhaseReason = "waiting for demo-2 to become writable: it is silent"
	s := newScene(t, f.Cluster, nil)
	err := s.run("demo-3", 100*time.Millisecond)
	mustFail(t, err, "a failover to demo-2 is in progress")
	mustFail(t, err, "waiting for demo-2 to become writable: it is silent")
	mustFail(t, err, "kubectl cnmsql failover demo --to demo-3 --accept-data-loss -n shop")
}

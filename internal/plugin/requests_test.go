package plugin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
)

func podOf(name string) *corev1.Pod {
	owner := metav1.NewControllerRef(healthy().Cluster, v1alpha1.GroupVersion.WithKind("Cluster"))
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name,
		Labels:          map[string]string{v1alpha1.LabelCluster: "demo", v1alpha1.LabelInstance: name},
		OwnerReferences: []metav1.OwnerReference{*owner}},
		Spec: corev1.PodSpec{NodeName: "n" + name[len(name)-1:]}}
}

// answers are what somebody types.
func (s *scene) answers(text string) { s.in = strings.NewReader(text) }

// managers say what Facts hold of them; all others are silent.
func (s *scene) managers(f *Facts) {
	s.ask = func(_ context.Context, name string) (word, error) {
		l := f.Live[name]
		if l.Report == nil {
			return word{}, errors.New(cmp.Or(l.Problem, "no answer"))
		}
		return word{Report: core.Known(*l.Report, time.Now(), time.Now())}, nil
	}
}

func (s *scene) annotation(obj client.Object, key string) (string, bool) {
	name := types.NamespacedName{Namespace: "shop", Name: obj.GetName()}
	if err := s.client.Get(context.Background(), name, obj); err != nil {
		s.t.Error(err)
	}
	value, is := obj.GetAnnotations()[key]
	return value, is
}

func lists(names ...string) func(*scene) {
	return func(s *scene) {
		s.decide(func(st *v1alpha1.ClusterStatus) { st.FencedInstances = names })
	}
}

func TestFenceWaitsUntilTheOperatorSaysSo(t *testing.T) {
	s := newScene(t, healthy().Cluster, lists("demo-2"), podOf("demo-2"))
	f := &fencer{s.caller, true}
	if err := f.fence(context.Background(), "2", 5*time.Second); err != nil {
		t.Fatal(err)
	}
	s.mustSay("Asked for fencing of demo-2 to be turned on; waiting until the operator shows it in " +
		"status.fencedInstances.")
	s.mustSay("To bring it back: kubectl cnmsql fence off demo demo-2 -n shop")
	if v, _ := s.annotation(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "demo-2"}},
		v1alpha1.AnnotationFencing); v != "on" {
		t.Errorf("the annotation is %q", v)
	}
}

func TestUnfenceTakesTheAnnotationOff(t *testing.T) {
	c, pod := healthy().Cluster, podOf("demo-1")
	c.Status.FencedInstances = []string{"demo-1"}
	pod.Annotations = map[string]string{v1alpha1.AnnotationFencing: "on", "other": "stays"}
	s := newScene(t, c, lists(), pod)
	f := &fencer{s.caller, false}
	if err := f.fence(context.Background(), "demo-1", 5*time.Second); err != nil {
		t.Fatal(err)
	}
	s.mustSay("demo-1 is not fenced any more")
	if _, is := s.annotation(pod, v1alpha1.AnnotationFencing); is || pod.Annotations["other"] != "stays" {
		t.Errorf("annotations: %v", pod.Annotations)
	}
}

func TestFencingThePrimaryIsAskedBack(t *testing.T) {
	s := newScene(t, healthy().Cluster, nil, podOf("demo-1"))
	s.answers("no\n")
	f := &fencer{s.caller, true}
	mustFail(t, f.fence(context.Background(), "demo-1", time.Second),
		`the answer was "no" and not "yes": nothing was done`)
	s.mustSay("STOPS THE WRITES OF THE WHOLE CLUSTER")
	s.mustSay("switch over first: kubectl cnmsql promote demo INSTANCE -n shop")
	if _, is := s.annotation(podOf("demo-1"), v1alpha1.AnnotationFencing); is {
		t.Error("it was fenced all the same")
	}
	s.answers("")
	f.caller = s.caller
	mustFail(t, f.fence(context.Background(), "demo-1", time.Second), "nobody answered, and nothing was done")
}

// Ctrl-C ends the context; a terminal where nobody types does not end the read.
func TestAQuestionIsLeftByCtrlC(t *testing.T) {
	ctx, interrupt := context.WithCancel(context.Background())
	for name, ask := range map[string]func(*scene) error{
		"failover": func(s *scene) error { return (&overrider{s.caller}).failOver(ctx, "2", time.Second) },
		"reinit":   func(s *scene) error { return (&reinit{s.caller}).reinit(ctx, []string{"2"}, time.Second) },
		"fence":    func(s *scene) error { return (&fencer{s.caller, true}).fence(ctx, "1", time.Second) },
	} {
		c := healthy()
		if name == "failover" {
			c.phase(core.PhaseBlocked, core.PrimaryUnreachable, "nobody is promoted")
		}
		s := newScene(t, c.Cluster, nil, podOf("demo-1"))
		quiet, hand := io.Pipe()
		t.Cleanup(func() { _ = hand.Close() })
		s.in = interrupted{quiet, interrupt}
		mustFail(t, ask(s), "interrupted before there was an answer: nothing was done")
		ctx, interrupt = context.WithCancel(context.Background())
	}
	interrupt()
}

// interrupted is a terminal at which somebody types Ctrl-C and nothing else.
type interrupted struct {
	io.Reader
	ctrlC func()
}

func (i interrupted) Read(p []byte) (int, error) {
	i.ctrlC()
	return i.Reader.Read(p)
}

func TestFencingThePrimaryGoesOnWithAYes(t *testing.T) {
	for name, set := range map[string]func(*scene){"typed": func(s *scene) { s.answers("yes\n") },
		"flag": func(s *scene) { s.yes = true }} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, healthy().Cluster, lists("demo-1"), podOf("demo-1"))
			set(s)
			f := &fencer{s.caller, true}
			if err := f.fence(context.Background(), "1", 5*time.Second); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestFenceOfAnUnknownInstanceListsThoseThereAre(t *testing.T) {
	s := newScene(t, healthy().Cluster, nil)
	f := &fencer{s.caller, true}
	mustFail(t, f.fence(context.Background(), "demo-9", time.Second),
		"no instance demo-9; it has: demo-1, demo-2, demo-3")
	mustFail(t, f.fence(context.Background(), "demo-2", time.Second), "demo-2 has no Pod at the moment")
}

func TestFenceThatNobodyAnswersTellsHowToTakeItBack(t *testing.T) {
	s := newScene(t, healthy().Cluster, nil, podOf("demo-2"))
	f := &fencer{s.caller, true}
	mustFail(t, f.fence(context.Background(), "demo-2", 300*time.Millisecond),
		"kubectl cnmsql fence off demo demo-2 -n shop")
}

func TestFenceNeedsToBeToldOnOrOff(t *testing.T) {
	cmd := Command()
	cmd.SetArgs([]string{"fence", "up", "demo", "1"})
	mustFail(t, cmd.Execute(), "fence up is not known: kubectl cnmsql fence on CLUSTER INSTANCE")
}

func TestReinitAddsToWhatOthersAskedFor(t *testing.T) {
	c := healthy().Cluster
	c.Annotations = map[string]string{v1alpha1.AnnotationReinit: "demo-3"}
	s := newScene(t, c, nil)
	s.managers(healthy())
	s.answers("yes\n")
	r := &reinit{s.caller}
	err := r.reinit(context.Background(), []string{"2", "demo-3"}, 300*time.Millisecond)
	mustFail(t, err, "the operator has not begun with demo-2, demo-3")
	mustFail(t, err, "to take it back: kubectl annotate cluster demo -n shop cnmsql.cnmsql.co/reinit-")
	if v, _ := s.annotation(s.cluster(), v1alpha1.AnnotationReinit); v != "demo-3,demo-2" {
		t.Errorf("the annotation is %q", v)
	}
	s.mustSay("ALL DATA OF demo-2 IS DELETED")
	s.mustSay("It holds nothing that demo-1 does not have.")
}

func TestReinitOfThePrimaryIsRefused(t *testing.T) {
	s := newScene(t, healthy().Cluster, nil)
	r := &reinit{s.caller}
	mustFail(t, r.reinit(context.Background(), []string{"2", "1"}, time.Second), "Switch over first, then repeat: "+
		"kubectl cnmsql promote demo INSTANCE -n shop")
	mustFail(t, r.reinit(context.Background(), []string{""}, time.Second), "has no instance")
	if _, is := s.annotation(s.cluster(), v1alpha1.AnnotationReinit); is {
		t.Error("it was written")
	}
}

func TestReinitNamesWhatOnlyADivergedInstanceHas(t *testing.T) {
	s := newScene(t, diverged().Cluster, nil)
	s.managers(diverged())
	s.answers("no\n")
	r := &reinit{s.caller}
	mustFail(t, r.reinit(context.Background(), []string{"demo-2"}, time.Second), "nothing was done")
	s.mustSay("It alone holds 3 transactions, LOST with its data: " + uuid2 + ":7-9")
	s.mustSay("kubectl cnmsql mysql demo --instance demo-2 -n shop")
}

func TestReinitSaysWhatItDoesNotKnow(t *testing.T) {
	s := newScene(t, diverged().Cluster, nil)
	r := &reinit{s.caller}
	mustFail(t, r.reinit(context.Background(), []string{"2", "3"}, time.Second), "nobody answered")
	s.mustSay("It has diverged: it holds transactions that the primary does not have, which are lost with it. Which, " +
		"it does not say now (no answer)")
	s.mustSay("What only it holds is not known: no answer")
}

// overridden is an operator that promotes demo-2 on a human's word.
func overridden(s *scene) {
	s.warn(core.ReasonOverride, "demo-2 is promoted because a human chose it")
	s.decide(func(st *v1alpha1.ClusterStatus) {
		st.Phase, st.PhaseReason, st.Operation = string(core.PhaseDegraded), "demo-2 takes writes", nil
		st.CurrentPrimary, st.PrimaryEpoch = "demo-2", 5
		st.Promotion = &v1alpha1.PromotionStatus{Epoch: 5, Instance: "demo-2", Proof: string(core.ProofAcceptedLoss)}
	})
	c := s.cluster()
	delete(c.Annotations, v1alpha1.AnnotationAcceptLoss)
	if err := s.client.Update(context.Background(), c); err != nil {
		s.t.Error(err)
	}
}

func TestFailoverNeedsBothFlags(t *testing.T) {
	mustFail(t, bothFlags("demo", "shop", "", true),
		"name the instance to promote with --to; kubectl cnmsql status demo -n shop")
	mustFail(t, bothFlags("demo", "shop", "2", false), "this promotes demo-2 without")
	mustFail(t, bothFlags("demo", "shop", "demo-2", false), "kubectl cnmsql status demo -n shop says what")
	mustFail(t, bothFlags("demo", "shop", "demo-2", false), "if that is acceptable, add --accept-data-loss")
	if err := bothFlags("demo", "shop", "demo-2", true); err != nil {
		t.Error(err)
	}
}

func TestFailoverTellsWhatIsLostAndWaits(t *testing.T) {
	f := blocked()
	f.live("demo-2").Server.Executed = set(uuid1 + ":1-990")
	f.live("demo-3").Server.Executed = set(uuid1 + ":1-995")
	s := newScene(t, f.Cluster, overridden)
	s.managers(f)
	s.answers("demo\n")
	o := &overrider{s.caller}
	if err := o.failOver(context.Background(), "2", 5*time.Second); err != nil {
		t.Fatal(err)
	}
	s.mustSay("Promoting demo-2 after demo-1 (epoch 4), WITHOUT A PROOF that demo-1 takes no writes.")
	s.mustSay("demo-2 holds 990 transactions. What is lost, as far as is known:")
	s.mustSay("demo-1: NOT KNOWN (no answer within 3s)")
	s.mustSay("demo-3: 5 transactions: " + uuid1 + ":991-995")
	s.mustSay("demo-3 holds more: with --to demo-3, 5 transactions less would be lost.")
	s.mustSay("Type the name of the cluster (demo) to promote demo-2:")
	s.mustSay("DataLossAccepted: demo-2 is promoted because a human chose it")
	s.mustSay("demo-2 is the primary of demo (epoch 5) and takes writes.")
}

func TestFailoverTellsWhetherAnotherMayTakeWrites(t *testing.T) {
	s := blocked().Cluster.Status
	report := func(writable, fenced int64) words {
		return words{"demo-1": {Report: core.Known(core.Report{Instance: "demo-1", WritableEpoch: writable,
			NoWritesBelow: fenced}, time.Now(), time.Now())}}
	}
	for name, r := range map[string]struct {
		to   string
		said words
		want string
	}{
		"it is silent": {"demo-2", words{}, "WITHOUT A PROOF that demo-1 takes no writes"},
		"it answers and is closed": {"demo-2", report(0, 0), "demo-1 answers from here and takes no writes, but has " +
			"not promised"},
		"its promise was earlier": {"demo-2", report(0, 4), "has not promised"},
		"it has promised":         {"demo-2", report(0, 5), "has promised to take none before epoch 5"},
		"it takes writes":         {"demo-2", report(4, 0), "WITHOUT A PROOF"},
		"it is the same": {"demo-1", words{},
			"Promoting demo-1 again (epoch 4): it was promoted last"},
	} {
		got := strings.Join(whoElseWrites(&s, r.to, r.said), "\n")
		if !strings.Contains(got, r.want) {
			t.Errorf("%s: %q is not in %q", name, r.want, got)
		}
	}
}

func TestFailoverWritesTheEpochThatItIsAbout(t *testing.T) {
	s := newScene(t, blocked().Cluster, nil)
	s.managers(blocked())
	s.yes = true
	o := &overrider{s.caller}
	mustFail(t, o.failOver(context.Background(), "demo-3", 300*time.Millisecond),
		"demo-3 does not take writes after 300ms")
	if v, _ := s.annotation(s.cluster(), v1alpha1.AnnotationAcceptLoss); v != "demo-3@4" {
		t.Errorf("the annotation is %q", v)
	}
}

func TestFailoverTellsWhyTheOperatorRefused(t *testing.T) {
	s := newScene(t, blocked().Cluster, func(s *scene) {
		s.warn(core.RefusalOverride, "the annotation accept-data-loss was refused: demo-2 cannot be promoted")
		c := s.cluster()
		delete(c.Annotations, v1alpha1.AnnotationAcceptLoss)
		if err := s.client.Update(context.Background(), c); err != nil {
			s.t.Error(err)
		}
	})
	s.yes = true
	o := &overrider{s.caller}
	mustFail(t, o.failOver(context.Background(), "2", 5*time.Second), "the operator refused: OverrideRefused: the "+
		"annotation accept-data-loss was refused: demo-2 cannot be promoted")
	s.mustSay("What demo-2 holds is not known")
}

func TestFailoverIsRefusedWhileSomebodyTakesWrites(t *testing.T) {
	s := newScene(t, healthy().Cluster, nil)
	s.yes = true
	o := &overrider{s.caller}
	mustFail(t, o.failOver(context.Background(), "2", time.Second), "nothing was done: the operator last reported "+
		"that the primary demo-1 takes writes (PrimaryHealthy), but demo-1 does not answer from here (no answer)")
	s.managers(healthy())
	o.caller = s.caller
	mustFail(t, o.failOver(context.Background(), "2", time.Second), "To make demo-2 primary without a loss: kubectl "+
		"cnmsql promote demo demo-2 -n shop")

	f := blocked()
	f.Live["demo-1"] = healthy().Live["demo-1"]
	s = newScene(t, f.Cluster, nil)
	s.yes = true
	s.managers(f)
	o = &overrider{s.caller}
	mustFail(t, o.failOver(context.Background(), "2", time.Second),
		"demo-1 answers from here and TAKES WRITES in epoch 4, though the operator does not reach it: clients are "+
			"served, nobody has to be promoted, and nothing was done. Promoting demo-2 would certainly make two "+
			"primaries. Fix the network between the operator and demo-1")
	if _, is := s.annotation(s.cluster(), v1alpha1.AnnotationAcceptLoss); is {
		t.Error("it was written")
	}
}

// A switchover is refused, too: the histories differ, and a human has to say which is right.
func TestNobodyIsToldToPromoteWhereThePrimaryLostTransactions(t *testing.T) {
	f := healthy()
	f.Cluster.Status.Diagnosis = string(core.PrimaryLostTransactions)
	s := newScene(t, f.Cluster, nil)
	s.managers(f)
	err := (&overrider{s.caller}).failOver(context.Background(), "2", time.Second)
	mustFail(t, err, "Nobody is promoted before you have decided which copy is right, and nothing was done. Stop the "+
		"application now")
	if strings.Contains(err.Error(), "cnmsql promote") {
		t.Error("it advises a promotion:", err)
	}
}

func TestFailoverToAnInstanceThatCannotServeIsRefused(t *testing.T) {
	f := blocked()
	f.Live["demo-2"] = Live{Report: &core.Report{Instance: "demo-2", State: core.Failed, Message: "DiskFull"}}
	s := newScene(t, f.Cluster, nil)
	s.managers(f)
	o := &overrider{s.caller}
	mustFail(t, o.failOver(context.Background(), "2", time.Second), "demo-2 cannot be promoted, and nothing was "+
		"done: its mysqld does not serve the cluster's data (Failed (DiskFull))")
	mustFail(t, o.failOver(context.Background(), "5", time.Second), "it has: demo-1, demo-2, demo-3")
	c := healthy().Cluster
	c.Status.Promotion, c.Status.Diagnosis = nil, ""
	mustFail(t, mayOverride(c, "demo-2", nil), "no primary yet")
}

func TestFailoverTypedWronglyDoesNothing(t *testing.T) {
	s := newScene(t, blocked().Cluster, nil)
	s.managers(blocked())
	s.answers("yes\n")
	o := &overrider{s.caller}
	mustFail(t, o.failOver(context.Background(), "2", time.Second),
		`the answer was "yes" and not "demo": nothing was done`)
	if _, is := s.annotation(s.cluster(), v1alpha1.AnnotationAcceptLoss); is {
		t.Error("it was written")
	}
}

func TestASnapshotIsAsOldAsItsManagerSays(t *testing.T) {
	begun := time.Now()
	text, err := json.Marshal(control.Snapshot{Asked: int64(10 * time.Second), Taken: int64(8 * time.Second),
		Report: core.Report{Instance: "demo-1"}})
	if err != nil {
		t.Fatal(err)
	}
	w, err := wordOf(text, begun, begun.Add(time.Second))
	if err != nil || !w.Report.NotBefore().Equal(begun.Add(-2*time.Second)) ||
		!w.Report.Received().Equal(begun.Add(time.Second)) {
		t.Errorf("%v %+v", err, w)
	}
	if _, err := wordOf([]byte("Error: no such command"), begun, begun); err == nil {
		t.Error("it was believed")
	}
}

func TestOneThatDoesNotAnswerHoldsUpNobody(t *testing.T) {
	s := newScene(t, healthy().Cluster, nil)
	s.ask = func(ctx context.Context, name string) (word, error) {
		if name == "demo-2" {
			select {} // not even the end of the context is heard
		}
		return word{Report: core.Known(core.Report{Instance: name}, time.Now(), time.Now())}, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	got := s.ask.all(ctx, []string{"demo-1", "demo-2", "demo-3"})
	if !got["demo-1"].Report.Known() || got["demo-2"].Report.Known() || got["demo-2"].Problem == "" {
		t.Errorf("%+v", got)
	}
}

func TestWhoMayNotAskInstancesIsToldWhichRightThatNeeds(t *testing.T) {
	f := healthy()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "demo-1", errors.New("jo may not"))
	askAll(t.Context(), func(context.Context, string) (word, error) {
		return word{}, fmt.Errorf("asking: %w", forbidden)
	}, f)
	if f.Live != nil || !strings.Contains(f.LiveProblem, "pods/exec") {
		t.Errorf("%+v %q", f.Live, f.LiveProblem)
	}
	f = healthy()
	askAll(t.Context(), func(context.Context, string) (word, error) { return word{}, errors.New("no answer") }, f)
	if f.LiveProblem != "" || f.Live["demo-1"].Problem != "no answer" {
		t.Errorf("%+v %q", f.Live, f.LiveProblem)
	}
}

package plugin

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// advises reports whether something to do has this in its text.
func advises(f *Facts, text string) bool {
	return slices.ContainsFunc(Build(*f).ToDo, func(line string) bool { return strings.Contains(line, text) })
}

func TestATaintIsAdvisedOnlyWhereTheNodeMayBeWhatFails(t *testing.T) {
	const taint = "kubectl taint node"
	if advises(blocked(), taint) {
		t.Error("it is advised beside the operator's own word on the proof")
	}
	f := blocked()
	f.phase(core.PhaseFailover, core.PrimaryUnreachable, "the manager of demo-1 does not answer")
	if !advises(f, "only if node n1 is powered off (NotReady is not enough): "+taint) {
		t.Errorf("it is not advised: %q", Build(*f).ToDo)
	}
	f.phase(core.PhaseDegraded, core.PrimaryUnreachableButReplicasStream, "replicas receive from demo-1")
	if advises(f, taint) || !advises(f, "see why demo-1 cannot be reached") {
		t.Errorf("replicas receive from it: %q", Build(*f).ToDo)
	}
}

func TestWhatEachHoldsIsShownWhileThePrimaryDoesNotSayWhatItHas(t *testing.T) {
	for name, r := range map[string]struct {
		of   *Facts
		want bool
	}{"healthy": {healthy(), false}, "it does not answer": {blocked(), true}, "its mysqld does not": {failover(), true},
		"nobody was asked": {notPermitted(), false}} {
		var out strings.Builder
		if err := WriteTable(&out, Build(*r.of)); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "HOLDS") != r.want || strings.Contains(out.String(), "LACKS") == r.want {
			t.Errorf("%s:\n%s", name, out.String())
		}
	}
}

// promoting is a switchover from demo-1 to demo-2, which began before.
func promoting(before time.Duration) *Facts {
	f := healthy()
	f.phase(core.PhaseSwitchover, core.PrimaryPromoting, "waiting for demo-2 to take writes")
	f.Cluster.Spec.MaxSwitchoverPause = 5
	f.Cluster.Status.Promotion.Instance, f.Cluster.Status.Promotion.RequiredGTID = "demo-2", uuid1+":1-1000"
	f.Cluster.Status.Operation = &v1alpha1.OperationStatus{Kind: string(core.OperationSwitchover),
		Step: string(core.StepPromote), From: "demo-1", To: "demo-2", StartedAt: at(before)}
	return f
}

func TestOnlyAFormerPrimaryThatCanReturnIsSaidToTakeWritesAgain(t *testing.T) {
	const (
		returns = "nothing: if demo-2 does not take writes within spec.maxSwitchoverPause (5s), demo-1 takes them again"
		cannot  = "it is not seen that demo-1 can take writes again; see what demo-2 says: kubectl logs demo-2 " +
			"-c mysql -n shop --tail"
		long = "the Switchover takes long; see what the operator says"
	)
	if f := promoting(time.Second); !advises(f, returns) || advises(f, long) {
		t.Errorf("it can: %q", Build(*f).ToDo)
	}
	const back = "to have demo-1 take writes again: kubectl cnmsql promote demo demo-1 -n shop"
	if f := promoting(time.Hour); !advises(f, back) || !advises(f, long) {
		t.Errorf("it can, and that takes long: %q", Build(*f).ToDo)
	}
	for name, hinder := range map[string]func(f *Facts){
		"it does not answer":        func(f *Facts) { f.Live["demo-1"] = Live{Problem: "no answer within 3s"} },
		"its mysqld does not":       func(f *Facts) { f.live("demo-1").Server = nil },
		"it is being stopped":       func(f *Facts) { f.live("demo-1").Terminating = true },
		"its Pod is being deleted":  func(f *Facts) { f.Pods["demo-1"].DeletionTimestamp = &metav1.Time{Time: now} },
		"it has diverged":           func(f *Facts) { f.Cluster.Status.DivergedInstances = []string{"demo-1"} },
		"it lacks what was to come": func(f *Facts) { f.live("demo-1").Server.Executed = set(uuid1 + ":1-999") },
	} {
		soon, late := promoting(time.Second), promoting(time.Hour)
		hinder(soon)
		hinder(late)
		if advises(soon, "takes them again") || advises(soon, "can take writes again") {
			t.Errorf("%s, at once: %q", name, Build(*soon).ToDo)
		}
		if !advises(late, cannot) || !advises(late, long) || advises(late, "promote demo demo-1") {
			t.Errorf("%s, after an hour: %q", name, Build(*late).ToDo)
		}
	}
	f := promoting(time.Second)
	f.Cluster.Spec.MaxSwitchoverPause = 0
	if advises(f, "takes them again") {
		t.Errorf("without a bound: %q", Build(*f).ToDo)
	}
}

// TestAFailoverThatWaitsForItsTargetSaysWhatHindersIt tells where to look, once it takes long.
func TestAFailoverThatWaitsForItsTargetSaysWhatHindersIt(t *testing.T) {
	const hinders = "see what hinders demo-2, which was promoted: kubectl logs demo-2 -c mysql -n shop --tail 50"
	for _, c := range []struct {
		before time.Duration
		step   core.Step
		want   bool
	}{{time.Hour, core.StepPromote, true}, {time.Second, core.StepPromote, false}, {time.Hour, core.StepProve, false}} {
		f := promoting(c.before)
		doing := f.Cluster.Status.Operation
		doing.Kind, doing.Step = string(core.OperationFailover), string(c.step)
		if advises(f, hinders) != c.want {
			t.Errorf("%s after %s: %q", c.step, c.before, Build(*f).ToDo)
		}
	}
}

func TestNobodysDataIsGivenUpWhileNobodyTakesWrites(t *testing.T) {
	const copied = "kubectl cnmsql reinit"
	for name, of := range map[string]func() *Facts{"diverged": diverged, "broken": degraded} {
		f := of()
		if !advises(f, copied) {
			t.Errorf("%s: %q", name, Build(*f).ToDo)
		}
		f.Live["demo-1"] = Live{Problem: "no answer within 3s"}
		f.Cluster.Status.Diagnosis = string(core.PrimaryUnreachable)
		if advises(f, copied) {
			t.Errorf("%s, and the primary is not known: %q", name, Build(*f).ToDo)
		}
	}
}

func TestAReplicaThatACopyHindersNeedsNothing(t *testing.T) {
	f := degraded()
	f.live("demo-3").Server.Replication.CopyHinders = true
	if advises(f, "demo-3") {
		t.Errorf("%q", Build(*f).ToDo)
	}
}

// TestWhoIsRefusedIsNotHelpedByLessDurability has a replica read Access denied: its account is what is to be mended.
func TestWhoIsRefusedIsNotHelpedByLessDurability(t *testing.T) {
	f := writesWait()
	f.Live["demo-2"] = healthy().Live["demo-2"]
	if !advises(f, "bring replicas back, or lower") {
		t.Errorf("of one that does not say why: %q", Build(*f).ToDo)
	}
	r := f.live("demo-2").Server.Replication
	r.IORunning, r.Refused = false, core.RefusedLogin
	if advises(f, "bring replicas back, or lower") || !advises(f, "demo-1 does not let demo-2 log in") {
		t.Errorf("of one that is refused: %q", Build(*f).ToDo)
	}
}

func TestAMinimumOfReplicasIsToBeLoweredOnlyWhereThatHelps(t *testing.T) {
	for least, helps := range map[int32]bool{0: false, 1: false, 2: true} {
		f := writesWait()
		f.Cluster.Spec.MinSyncReplicas = &least
		if !advises(f, "spec.mysql.semiSync.dataDurability") || advises(f, "spec.minSyncReplicas") != helps {
			t.Errorf("%d of three: %q", least, Build(*f).ToDo)
		}
	}
}

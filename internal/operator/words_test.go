package operator

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

func TestWordsAloneAreNotWrittenAtOnce(t *testing.T) {
	now := time.Now()
	said := func(status metav1.ConditionStatus, message string) []metav1.Condition {
		return []metav1.Condition{{Type: "Ready", Status: status, Reason: "Switchover", Message: message}}
	}
	words := func(s *v1alpha1.ClusterStatus) { s.PhaseReason = "waiting for c-2" }
	for name, tc := range map[string]struct {
		change        func(*v1alpha1.ClusterStatus)
		written, want time.Duration
	}{
		"nothing differs":           {change: func(*v1alpha1.ClusterStatus) {}},
		"how it stands":             {words, 100 * time.Millisecond, 400 * time.Millisecond},
		"how it stands, for long":   {change: words, written: time.Second},
		"a clock that was set back": {words, -time.Hour, wordsPause},
		"what an instance says": {change: func(s *v1alpha1.ClusterStatus) {
			s.InstancesReported[0].Message = "opens"
		}, want: wordsPause},
		"a condition's message": {change: func(s *v1alpha1.ClusterStatus) {
			s.Conditions = said(metav1.ConditionTrue, "other")
		}, want: wordsPause},
		"a condition": {change: func(s *v1alpha1.ClusterStatus) {
			s.Conditions = said(metav1.ConditionFalse, "a")
		}},
		"the primary":          {change: func(s *v1alpha1.ClusterStatus) { s.CurrentPrimary = "c-2" }},
		"the epoch, and words": {change: func(s *v1alpha1.ClusterStatus) { s.Promotion.Epoch = 2; words(s) }},
		"how many are ready":   {change: func(s *v1alpha1.ClusterStatus) { s.ReadyInstances++ }},
	} {
		t.Run(name, func(t *testing.T) {
			before := aCluster().Status
			before.Conditions = said(metav1.ConditionTrue, "a")
			before.InstancesReported = []v1alpha1.InstanceStatus{{Name: "c-1"}}
			after := before.DeepCopy()
			tc.change(after)
			s := clusterState{written: now.Add(-tc.written)}
			is, got := s.toWrite(&before, after, now)
			if got != tc.want {
				t.Errorf("they wait for %s, and are to for %s", got, tc.want)
			}
			if differs := name != "nothing differs"; is != (differs && tc.want == 0) {
				t.Errorf("it is to be written: %t", is)
			}
		})
	}
}

func TestWordsThatWaitedAreWritten(t *testing.T) {
	c := aCluster()
	r := operatorOf(t, newFlaky(t, c, aPod("c-1", "first", "n1")))
	o, plan, err := r.decide(t.Context(), c, nil)
	must(t, err)
	publish := func(events ...core.Event) time.Duration {
		plan.Events = events
		due, err := r.publish(quietly(t), &c, o, plan, true)
		must(t, err)
		return due
	}
	const old = "what was true before"
	publish()
	version := c.ResourceVersion
	c.Status.PhaseReason = old
	if due := publish(); c.ResourceVersion != version || due <= 0 || due > wordsPause {
		t.Errorf("version %s became %s, and the next look is after %s", version, c.ResourceVersion, due)
	}
	r.state(c).written = time.Now().Add(-wordsPause)
	if due := publish(); due != 0 || c.ResourceVersion == version || c.Status.PhaseReason == old {
		t.Errorf("%q is not replaced, and the next look is after %s", c.Status.PhaseReason, due)
	}
	c.Status.PhaseReason = old
	if due := publish(core.Event{Reason: core.ReasonRequested}); due != 0 || c.Status.PhaseReason == old {
		t.Errorf("what an event comes with is not written: %q, then after %s", c.Status.PhaseReason, due)
	}
}

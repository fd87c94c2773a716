package plugin

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// Replication of demo-2 is broken: it received acknowledged writes of a former primary, which the
// present one lacks, and has not applied them. Its data are asked to be thrown away.
func TestReinitNamesWhatOnlyARelayLogHas(t *testing.T) {
	f := healthy()
	r := f.live("demo-2").Server
	if r.Replication == nil {
		r.Replication = &core.Replication{}
	}
	r.Replication.Retrieved = set("33333333-3333-3333-3333-333333333333" + ":1-5")
	s := newScene(t, f.Cluster, nil)
	s.managers(f)
	s.answers("no\n")
	re := &reinit{s.caller}
	mustFail(t, re.reinit(context.Background(), []string{"demo-2"}, 0), "nothing was done")
	if said := s.out.String(); strings.Contains(said, "It holds nothing that demo-1 does not have.") {
		t.Errorf("it holds %s, and is said: %s", f.live("demo-2").Server.Holds(), said)
	}
}

// A group was forced to go on without demo-3, which had received more. It is back, and the operator has not
// judged it yet: it does not say itself what the group lacks (agent.excluded).
func TestReinitNamesWhatOnlyALeftOutMemberHas(t *testing.T) {
	f := online()
	f.Cluster.Status.GroupReplication.LeftOut = []v1alpha1.LeftOutMember{{Instance: "demo-3",
		Held: groupName + ":1-1000"}}
	f.member("demo-3", core.MemberOffline, true)
	r := f.live("demo-3").Server
	r.Executed, r.Group = set(groupName+":1-1010"), &core.GroupView{State: core.MemberOffline}
	s := newScene(t, f.Cluster, nil)
	s.managers(f)
	s.answers("no\n")
	re := &reinit{s.caller}
	mustFail(t, re.reinit(context.Background(), []string{"demo-3"}, 0), "nothing was done")
	if said := s.out.String(); strings.Contains(said, "It holds nothing that demo-1 does not have.") {
		t.Errorf("it holds %s, demo-1 holds %s, and is said: %s", r.Holds(), f.live("demo-1").Server.Holds(), said)
	}
}

// The request is for the epoch and the volume that were shown, says when the instance could not be
// asked, and keeps what others asked for.
func TestReinitBindsWhatItShows(t *testing.T) {
	for want, answers := range map[string]bool{
		"demo-3,demo-2@7/before":         true,
		"demo-3,demo-2@7/before/unheard": false,
	} {
		f := healthy()
		f.Cluster.Annotations = map[string]string{v1alpha1.AnnotationReinit: "demo-3"}
		f.Cluster.Status.PrimaryEpoch = 7
		s := newScene(t, f.Cluster, nil, claimOf("demo-2"))
		if answers {
			s.managers(f)
		}
		s.yes = true
		err := (&reinit{s.caller}).reinit(t.Context(), []string{"2"}, 100*time.Millisecond)
		mustFail(t, err, "has not begun with demo-2")
		if v, _ := s.annotation(s.cluster(), v1alpha1.AnnotationReinit); v != want {
			t.Errorf("the annotation is %q, and should be %q", v, want)
		}
	}
}

// What has changed between what was shown and what is asked for is not asked for.
func TestReinitIsNotWrittenForAnotherClusterThanWasShown(t *testing.T) {
	for want, change := range map[string]func(*v1alpha1.ClusterStatus, *reinit, *shown){
		"it is epoch 9 by now": func(now *v1alpha1.ClusterStatus, _ *reinit, _ *shown) { now.PrimaryEpoch = 9 },
		"has another volume by now": func(_ *v1alpha1.ClusterStatus, _ *reinit, s *shown) {
			s.claims["demo-2"] = "former"
		},
		"has diverged meanwhile": func(now *v1alpha1.ClusterStatus, _ *reinit, _ *shown) {
			now.DivergedInstances = []string{"demo-2"}
		},
		"the primary is demo-3 by now": func(now *v1alpha1.ClusterStatus, _ *reinit, _ *shown) {
			now.Promotion, now.CurrentPrimary = nil, "demo-3"
		},
	} {
		now := healthy().Cluster
		now.Status.PrimaryEpoch = 7
		before := now.DeepCopy()
		r := &reinit{}
		was := shown{before, map[string]types.UID{"demo-2": "before"}, toldOf{}}
		change(&now.Status, r, &was)
		s := newScene(t, now, nil, claimOf("demo-2"))
		r.caller = s.caller
		_, err := r.write(t.Context(), []string{"demo-2"}, was)
		mustFail(t, err, want)
		if _, is := s.annotation(s.cluster(), v1alpha1.AnnotationReinit); is {
			t.Errorf("%s: it was written", want)
		}
	}
}

package plugin

import (
	"context"
	"strings"
	"testing"

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

package operator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/topology"
	"cnmsql.co/internal/gtid"
)

func TestPositionsInTheStatusAreBounded(t *testing.T) {
	var text []string
	for i := range 3000 {
		text = append(text, fmt.Sprint(2*i+1))
	}
	long := gtid.MustParse("aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:" + strings.Join(text, ":"))
	short := gtid.MustParse("aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:1-7")
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	o := core.Observation{Now: now, Instances: []core.Instance{
		{Name: "c-1", LastExecuted: core.Known(long, now, now)}, {Name: "c-2", LastExecuted: core.Known(short, now,
			now)}, {Name: "c-3"}}}
	s := v1alpha1.ClusterStatus{GTIDExecutedByInstance: map[string]string{"c-3": "old", "c-9": "gone"}}
	notePositions(&s, o)
	got := s.GTIDExecutedByInstance
	if len(got) != 3 || got["c-2"] != short.String() || got["c-3"] != "old" || got["c-1"] == "" ||
		len(got["c-1"]) > maxSetText {
		t.Errorf("got %v", got)
	}
	if !s.GTIDExecutedUpdatedAt.Time.Equal(now) {
		t.Errorf("it is of %s", s.GTIDExecutedUpdatedAt)
	}
}

// ofGroup is an established group of which c-1 is the primary, as those of its members
// see it who are online; the others are not heard.
func ofGroup(views ...core.MemberState) core.Observation {
	now := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	o := core.Observation{Now: now, Cluster: core.Cluster{Name: "c", Wanted: len(views),
		Topology: core.TopologyGroup, Group: &core.Group{},
		Routed: core.Known("c-1", now, now),
		Status: core.Status{Phase: core.PhaseHealthy, Epoch: 2, CurrentPrimary: "c-1", TargetPrimary: "c-1",
			EstablishedAt: now.Add(-time.Hour),
			Group: &core.GroupStatus{Name: "g", Bootstrapped: true, Primary: "c-1", HasQuorum: true,
				ViewMax: len(views)}}}}
	var members []core.ViewMember
	for n, state := range views {
		role := map[bool]core.MemberRole{true: core.MemberPrimary, false: core.MemberSecondary}[n == 0]
		members = append(members, core.ViewMember{Host: fmt.Sprintf("c-%d", n+1), State: state, Role: role})
	}
	for n, state := range views {
		name := members[n].Host
		in := core.Instance{Name: name, Ordinal: n + 1, Volume: core.Known(core.Volume{Exists: true,
			Bound: true}, now, now),
			Pod: core.Known(core.Pod{Exists: true, Current: true, Ready: state == core.MemberOnline, Role: "replica",
				Routable: state == core.MemberOnline}, now, now)}
		if state == core.MemberOnline {
			view := &core.GroupView{State: state, Role: members[n].Role, ViewID: "v:1", Members: members}
			in.Report = core.Known(core.Report{Instance: name, State: core.Running, Data: core.DataPopulated,
				Server: &core.Server{UUID: name, Group: view}}, now, now)
		}
		o.Instances, o.Cluster.Status.InstanceNames = append(o.Instances, in),
			append(o.Cluster.Status.InstanceNames, name)
	}
	return o
}

func wishFence(o core.Observation, instance int) core.Observation {
	pod, _ := o.Instances[instance].Pod.Get()
	pod.FencingRequested = true
	o.Instances[instance].Pod = core.Known(pod, o.Now, o.Now)
	return o
}

const (
	online = core.MemberOnline
	away   = core.MemberUnreachable
)

// trueOf are the conditions that are True. Those that come and go are True, or are not there.
func trueOf(t *testing.T, conditions []metav1.Condition) (are []string) {
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionProgressing, v1alpha1.ConditionDegraded,
		v1alpha1.ConditionAvailable, v1alpha1.ConditionHealthy, v1alpha1.ConditionInitialized} {
		if meta.IsStatusConditionTrue(conditions, kind) {
			are = append(are, kind)
		} else if !meta.IsStatusConditionFalse(conditions, kind) {
			t.Errorf("%s is neither True nor False", kind)
		}
	}
	for _, kind := range []string{v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
		if meta.FindStatusCondition(conditions, kind) != nil {
			are = append(are, kind)
		}
	}
	return are
}

func TestConditionsOfAGroupTellALostQuorumAndARefusedFence(t *testing.T) {
	for name, want := range map[string]struct {
		o       core.Observation
		are     string // the conditions that are True
		reason  string // of Degraded
		message string
	}{
		"all is well": {ofGroup(online, online, online), "Ready Available Healthy Initialized", "Healthy",
			"all 3 members are online"},
		"one is away": {ofGroup(online, online, away), "Ready Degraded Available Initialized Reconciling", "Degraded",
			"c-3"},
		"the quorum is lost": {ofGroup(online, away, away), "Degraded Initialized Stalled", "QuorumLost",
			"the group has lost its quorum"},
		"a fence is refused": {wishFence(ofGroup(online, online, away), 1), "Ready Degraded Available " +
			"Initialized Stalled", "FenceWouldLoseQuorum",
			"c-2 is not fenced: 1 of 3 members would be left online"},
		"a fence is refused where all is well": {wishFence(ofGroup(online, online), 1), "Ready Degraded Available " +
			"Healthy Initialized Stalled", "FenceWouldLoseQuorum",
			"c-2 is not fenced: 1 of 2 members would be left online"},
		"a fence is asked for while the quorum is lost": {wishFence(ofGroup(online, away, away), 0),
			"Degraded Initialized Stalled", "FenceWouldLoseQuorum",
			"c-1 is not fenced: it is not known whether the group has a majority without it"},
	} {
		t.Run(name, func(t *testing.T) {
			c := aCluster()
			c.Generation = 7
			s := v1alpha1.ClusterStatus{Conditions: []metav1.Condition{
				{Type: v1alpha1.ConditionReconciling, Status: metav1.ConditionTrue},
				{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue}}}
			describe(&s, c, want.o, topology.Decide(want.o))
			if got := strings.Join(trueOf(t, s.Conditions), " "); got != want.are {
				t.Errorf("True are %s, and not %s", got, want.are)
			}
			degraded := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionDegraded)
			if degraded.Reason != want.reason || !strings.Contains(degraded.Message, want.message) ||
				degraded.ObservedGeneration != 7 {
				t.Errorf("Degraded says %+v", degraded)
			}
			ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
			if is := ready.Status == metav1.ConditionTrue; !is && ready.Reason != want.reason ||
				is && ready.Reason != string(topology.Decide(want.o).Status.Phase) {
				t.Errorf("Ready says %+v", ready)
			}
			if meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionDurable) != nil {
				t.Error("it says how durable writes are, as if there were acknowledgements of replicas")
			}
		})
	}
}

func TestANameThatIsNoReasonOfAConditionIsNone(t *testing.T) {
	for reason, want := range map[core.Reason]string{"NoProof": "NoProof", "": "Blocked", "no such image": "Blocked",
		"Err-Image": "Blocked", "1st": "Blocked"} {
		s := core.Status{Phase: core.PhaseBlocked, Blocked: &core.Notice{Reason: reason}}
		if got := refusalOrPhase(s); got != want {
			t.Errorf("of %q it is %q", reason, got)
		}
	}
}

func TestDurableTellsWhatAFailoverMayLose(t *testing.T) {
	promoted := core.Status{Promotion: &core.Promotion{Epoch: 1, Instance: "c-1"}}
	quorum := core.Durability{Mode: core.DurabilityQuorum}
	told := promoted
	told.Durable, told.DurableMessage = core.DurableNo, "a commit waits for 0 of 1 wished acknowledgement"
	inGroup := core.Cluster{Wanted: 3, Topology: core.TopologyGroup, Group: &core.Group{}}
	for name, r := range map[string]struct {
		s    core.Status
		c    core.Cluster
		want string // reason; "" for no condition
	}{
		"asynchronous":                   {promoted, core.Cluster{Wanted: 3}, "Asynchronous"},
		"asynchronous, no primary yet":   {core.Status{}, core.Cluster{Wanted: 3}, ""},
		"a single instance":              {promoted, core.Cluster{Wanted: 1}, ""},
		"a group":                        {promoted, inGroup, ""},
		"quorum, nothing is decided yet": {promoted, core.Cluster{Wanted: 3, Durability: quorum}, ""},
		"quorum, too few":                {told, core.Cluster{Wanted: 3, Durability: quorum}, "TooFewAcknowledgements"},
	} {
		t.Run(name, func(t *testing.T) {
			got := durableCondition(r.s, r.c)
			if got == nil {
				got = &metav1.Condition{}
			}
			if got.Reason != r.want || r.want != "" && (got.Status != metav1.ConditionFalse || got.Message == "") {
				t.Errorf("it says %+v, and not %q", got, r.want)
			}
		})
	}
}

func TestReplicasAreCounted(t *testing.T) {
	now := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	ready, leaving := core.Pod{Exists: true, Ready: true}, core.Pod{Exists: true, Ready: true, Terminating: true}
	of := func(pods ...core.Pod) core.Observation {
		o := core.Observation{Now: now}
		for n, pod := range pods {
			o.Instances = append(o.Instances, core.Instance{Name: fmt.Sprintf("c-%d", n+1),
				Pod: core.Known(pod, now, now)})
		}
		return o
	}
	unknown := of(ready, ready, ready)
	unknown.Instances[2].Pod = core.Fact[core.Pod]{}
	for name, want := range map[string]struct {
		o              core.Observation
		s              core.Status
		synced, errant int32
	}{
		"all are well": {of(ready, ready, ready), core.Status{CurrentPrimary: "c-1"}, 2, 0},
		"the primary is not ready": {of(core.Pod{Exists: true}, ready, ready),
			core.Status{CurrentPrimary: "c-1"}, 2, 0},
		"one is not ready": {of(ready, core.Pod{Exists: true}, ready),
			core.Status{CurrentPrimary: "c-1"}, 1, 0},
		"one is being stopped":    {of(ready, leaving, ready), core.Status{CurrentPrimary: "c-1"}, 1, 0},
		"one has no Pod":          {of(ready, core.Pod{}, ready), core.Status{CurrentPrimary: "c-1"}, 1, 0},
		"of one nothing is known": {unknown, core.Status{CurrentPrimary: "c-1"}, 1, 0},
		"one has diverged": {of(ready, ready, ready), core.Status{CurrentPrimary: "c-1",
			Diverged: []string{"c-3"}}, 1, 1},
		"one that is away has diverged": {of(ready, ready, core.Pod{}), core.Status{CurrentPrimary: "c-1",
			Diverged: []string{"c-3"}}, 1, 1},
		"another has become the primary": {of(ready, ready, ready), core.Status{CurrentPrimary: "c-2",
			Diverged: []string{"c-1"}}, 1, 1},
		"there has been no primary yet":   {of(ready, ready, ready), core.Status{}, 0, 0},
		"a single instance":               {of(ready), core.Status{CurrentPrimary: "c-1"}, 0, 0},
		"of a group a secondary is away":  {ofGroup(online, online, away), core.Status{CurrentPrimary: "c-1"}, 1, 0},
		"of a group all have been online": {ofGroup(online, online, online), core.Status{CurrentPrimary: "c-1"}, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := v1alpha1.ClusterStatus{SyncedReplicas: 9, ErrantReplicas: 9}
			describe(&s, aCluster(), want.o, core.Plan{Status: want.s})
			if s.SyncedReplicas != want.synced || s.ErrantReplicas != want.errant {
				t.Errorf("%d are in step and %d errant, and not %d and %d", s.SyncedReplicas, s.ErrantReplicas,
					want.synced, want.errant)
			}
		})
	}
}

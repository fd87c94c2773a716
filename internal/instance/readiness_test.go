package instance

import (
	"io"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/gtid"
)

// aMember is the manager of a member that has data, and of a mysqld that answers.
func aMember(t *testing.T) *manager {
	m := newManager(Options{Namespace: "ns", Cluster: "db", Instance: "db-2", Log: io.Discard}.withDefaults())
	m.lease = &lease{me: "db-2"}
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "db", UID: "u-1"}}
	c.Spec.Replication.Mode = v1alpha1.ReplicationGroup
	m.setCluster(c)
	m.update(func(s *state) {
		s.mysqld.proc, s.mysqld.accepted, s.volume.data = &process{done: make(chan struct{})}, true, core.DataPopulated
	})
	m.sees(&core.GroupView{State: core.MemberOnline, Role: core.MemberSecondary})
	if why := readyz(m); why != "ok\n" {
		t.Fatalf("a member that is online is not ready: %s", why)
	}
	return m
}

func (m *manager) sees(v *core.GroupView) {
	m.update(func(s *state) { s.status.server = &core.Server{Group: v} })
}

// readyz is what the kubelet is told: "ok\n", or why not.
func readyz(m *manager) string {
	answer := httptest.NewRecorder()
	newProber(m).handler().ServeHTTP(answer, httptest.NewRequest("GET", "/readyz", nil))
	if ok := answer.Code == 200; ok != (answer.Body.String() == "ok\n") {
		return "it contradicts itself: " + answer.Body.String()
	}
	return answer.Body.String()
}

func TestAMemberIsReadyWhileItIsOnlineAndInNoOtherState(t *testing.T) {
	m := aMember(t)
	for _, role := range []core.MemberRole{core.MemberPrimary, core.MemberSecondary} {
		for _, c := range []struct {
			state core.MemberState
			ready bool
		}{
			{core.MemberRecovering, false}, {core.MemberOnline, true}, {core.MemberError, false},
			{core.MemberOnline, true}, {core.MemberOffline, false},
			{core.MemberOnline, true}, {core.MemberUnreachable, false}, {core.MemberOnline, true},
			{core.MemberUnknown, false}, {"", false},
		} {
			m.sees(&core.GroupView{State: c.state, Role: role})
			if why := readyz(m); (why == "ok\n") != c.ready {
				t.Errorf("%s %q: %s", role, c.state, why)
			}
		}
	}
}

func TestWhatElseKeepsAMemberFromBeingReady(t *testing.T) {
	for name, happens := range map[string]func(*manager, *state){
		"mysqld does not answer": func(_ *manager, s *state) { s.mysqld.accepted = false },
		"it has no data":         func(_ *manager, s *state) { s.volume.data = core.DataScratch },
		"it has diverged": func(m *manager, _ *state) {
			m.worker.st.decision = agent.Decision{Errant: gtid.MustParse("11111111-1111-1111-1111-111111111111:1")}
		},
		"nothing is known of its group": func(_ *manager, s *state) { s.status.server = &core.Server{} },
		"it replicates, in no group": func(_ *manager, s *state) {
			s.status.server = &core.Server{Replication: &core.Replication{SQLRunning: true, IORunning: true}}
		},
		"nothing is known of mysqld": func(_ *manager, s *state) { s.status.server = nil },
	} {
		m := aMember(t)
		m.update(func(s *state) { happens(m, s) })
		if why := readyz(m); why == "ok\n" {
			t.Errorf("%s, and it is ready", name)
		}
	}
}

package operator

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// scrape is what the operator's /metrics says of groups, in the order of the names.
func scrape(t *testing.T, reg *prometheus.Registry) []string {
	t.Helper()
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	var out []string
	for line := range strings.Lines(answer.Body.String()) {
		if strings.HasPrefix(line, "cnmsql_cluster_gr_") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	slices.Sort(out)
	return out
}

func named(namespace, name string) *v1alpha1.Cluster {
	c := &v1alpha1.Cluster{}
	c.Namespace, c.Name = namespace, name
	return c
}

func inGroup(g core.GroupStatus, states ...core.MemberState) core.Plan {
	for _, state := range states {
		g.Members = append(g.Members, core.GroupMember{State: state})
	}
	return core.Plan{Status: core.Status{Group: &g}}
}

func TestMetricsOfAGroupAreWhatWasDecidedLast(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, c := NewMetrics(reg), named("ns", "c")
	for name, want := range map[string]struct {
		plan core.Plan
		says []string
	}{
		"a group that is not made yet": {inGroup(core.GroupStatus{}, core.MemberUnknown), []string{
			`cnmsql_cluster_gr_bootstrapped{cluster="c",namespace="ns"} 0`,
			`cnmsql_cluster_gr_has_quorum{cluster="c",namespace="ns"} 0`,
			`cnmsql_cluster_gr_members{cluster="c",namespace="ns",state="ERROR"} 0`,
			`cnmsql_cluster_gr_members{cluster="c",namespace="ns",state="OFFLINE"} 0`,
			`cnmsql_cluster_gr_members{cluster="c",namespace="ns",state="ONLINE"} 0`,
			`cnmsql_cluster_gr_members{cluster="c",namespace="ns",state="RECOVERING"} 0`,
			`cnmsql_cluster_gr_members{cluster="c",namespace="ns",state="UNKNOWN"} 1`,
			`cnmsql_cluster_gr_members{cluster="c",namespace="ns",state="UNREACHABLE"} 0`,
			`cnmsql_cluster_gr_view_size{cluster="c",namespace="ns"} 0`,
		}},
		"a group with members of every kind": {inGroup(core.GroupStatus{Bootstrapped: true,
			HasQuorum: true, ViewMax: 9},
			core.MemberOnline, core.MemberRecovering, core.MemberOffline, core.MemberError, core.MemberOnline,
			core.MemberUnreachable, core.MemberOnline, core.MemberRecovering), []string{
			`cnmsql_cluster_gr_bootstrapped{cluster="c",namespace="ns"} 1`,
			`cnmsql_cluster_gr_has_quorum{cluster="c",namespace="ns"} 1`,
			`cnmsql_cluster_gr_members{cluster="c",namespace="ns",state="ERROR"} 1`,
			`cnmsql_cluster_gr_members{cluster="c",namespace="ns",state="OFFLINE"} 1`,
			`cnmsql_cluster_gr_members{cluster="c",namespace="ns",state="ONLINE"} 3`,
			`cnmsql_cluster_gr_members{cluster="c",namespace="ns",state="RECOVERING"} 2`,
			`cnmsql_cluster_gr_members{cluster="c",namespace="ns",state="UNKNOWN"} 0`,
			`cnmsql_cluster_gr_members{cluster="c",namespace="ns",state="UNREACHABLE"} 1`,
			`cnmsql_cluster_gr_view_size{cluster="c",namespace="ns"} 9`,
		}},
		"a group that has lost its quorum": {inGroup(core.GroupStatus{Bootstrapped: true, ViewMax: 3},
			core.MemberOnline, core.MemberOffline, core.MemberOffline), []string{
			`cnmsql_cluster_gr_bootstrapped{cluster="c",namespace="ns"} 1`,
			`cnmsql_cluster_gr_has_quorum{cluster="c",namespace="ns"} 0`,
			`cnmsql_cluster_gr_members{cluster="c",namespace="ns",state="ERROR"} 0`,
			`cnmsql_cluster_gr_members{cluster="c",namespace="ns",state="OFFLINE"} 2`,
			`cnmsql_cluster_gr_members{cluster="c",namespace="ns",state="ONLINE"} 1`,
			`cnmsql_cluster_gr_members{cluster="c",namespace="ns",state="RECOVERING"} 0`,
			`cnmsql_cluster_gr_members{cluster="c",namespace="ns",state="UNKNOWN"} 0`,
			`cnmsql_cluster_gr_members{cluster="c",namespace="ns",state="UNREACHABLE"} 0`,
			`cnmsql_cluster_gr_view_size{cluster="c",namespace="ns"} 3`,
		}},
	} {
		m.Observe(c, want.plan)
		if diff := cmp.Diff(want.says, scrape(t, reg)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAnAsynchronousClusterHasNoMetricsOfAGroup(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := NewMetrics(reg)
	m.Observe(named("ns", "c"), core.Plan{Status: core.Status{Epoch: 3, Ready: 2, Diagnosis: core.PrimaryHealthy,
		Phase: core.PhaseHealthy}})
	if got := scrape(t, reg); len(got) > 0 {
		t.Errorf("it has %q", got)
	}
	m.Observe(named("ns", "g"), inGroup(core.GroupStatus{}, core.MemberOnline))
	for _, line := range scrape(t, reg) {
		if strings.Contains(line, `cluster="c"`) {
			t.Errorf("beside a group, it has %s", line)
		}
	}
}

func TestMetricsOfAGroupEndWithItsCluster(t *testing.T) {
	for name, successor := range map[string]*v1alpha1.Cluster{"it is gone": nil,
		"another has its name": named("ns", "c")} {
		t.Run(name, func(t *testing.T) {
			reg := prometheus.NewRegistry()
			c := named("ns", "c")
			c.UID = "one"
			a := newAPI(t, c)
			r := newTestReconciler(t, a, a)
			r.Metrics = NewMetrics(reg)
			ctx := quietly(t)
			if _, err := r.cluster(ctx, clusterKey); err != nil {
				t.Fatal(err)
			}
			r.Metrics.Observe(c, inGroup(core.GroupStatus{Bootstrapped: true}, core.MemberOnline))
			r.Metrics.Observe(named("other", "c"), inGroup(core.GroupStatus{Bootstrapped: true}, core.MemberOnline))
			must(t, a.Delete(ctx, c))
			if successor != nil {
				successor.UID = "two"
				must(t, a.Create(ctx, successor))
			}
			if _, err := r.cluster(ctx, clusterKey); err != nil {
				t.Fatal(err)
			}
			got := scrape(t, reg)
			for _, line := range got {
				if strings.Contains(line, `namespace="ns"`) {
					t.Errorf("left is %s", line)
				}
			}
			if len(got) != 9 {
				t.Errorf("of the group in another namespace, there is %q", got)
			}
		})
	}
}

func TestTheMetricOfWhatBlocksIsThereAsLongAsItDoes(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, c := NewMetrics(reg), named("ns", "c")
	for _, blocked := range []*core.Notice{{Reason: "NoProof"}, {Reason: "QuorumLost"}, nil} {
		m.Observe(c, core.Plan{Status: core.Status{Blocked: blocked}})
		var got []string
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, s := range f.GetMetric() {
				if f.GetName() == "cnmsql_cluster_blocked" {
					got = append(got, s.GetLabel()[2].GetValue())
				}
			}
		}
		var want []string
		if blocked != nil {
			want = []string{string(blocked.Reason)}
		}
		if !slices.Equal(got, want) {
			t.Errorf("blocked by %v, it says %v", want, got)
		}
	}
}

// seriesOf are the series of a metric of the operator, without its labels of the Cluster.
func seriesOf(reg *prometheus.Registry, metric string) (out []string) {
	for _, line := range said(reg) {
		if of, is := strings.CutPrefix(line, "cnmsql_cluster_"+metric+`{cluster="c",namespace="ns",`); is {
			out = append(out, of)
		}
	}
	return out
}

// TestEachNoticeThatStandsIsAMetric reports whether what stands while the phase may be Healthy can be
// alerted on, whomever it is about, and until it ends.
func TestEachNoticeThatStandsIsAMetric(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, c := NewMetrics(reg), named("ns", "c")
	severed, foreign := core.Notice{Reason: core.ReasonMembersSevered}, core.Notice{Reason: core.ReasonForeignPod,
		Subject: "a-copy"}
	other := core.Notice{Reason: core.ReasonForeignPod, Subject: "another"}
	for _, tc := range []struct {
		notices []core.Notice
		want    []string
	}{
		{[]core.Notice{severed}, []string{`reason="MembersSevered"} 1`}},
		{[]core.Notice{foreign, severed, other}, []string{`reason="ForeignPod"} 1`, `reason="MembersSevered"} 1`}},
		{[]core.Notice{other}, []string{`reason="ForeignPod"} 1`}},
		{nil, nil},
		{[]core.Notice{severed}, []string{`reason="MembersSevered"} 1`}},
	} {
		m.Observe(c, core.Plan{Status: core.Status{Phase: core.PhaseHealthy, Notices: tc.notices}})
		if got := seriesOf(reg, "notice"); !slices.Equal(got, tc.want) {
			t.Errorf("of %v, there is %q", tc.notices, got)
		}
	}
	m.Forget(client.ObjectKeyFromObject(c))
	if got := said(reg); len(got) > 0 {
		t.Errorf("it is gone, and its series are %q", got)
	}
}

func TestTheEndOfAnAuthorityIsAMetric(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, c, a := NewMetrics(reg), aCluster(), newAPI(t)
	ca, err := newPrerequisites(a, a).authority(t.Context(), c, new([]core.Problem))
	must(t, err)
	ends := func() (at []float64) {
		families, err := reg.Gather()
		must(t, err)
		for _, f := range families {
			if f.GetName() == "cnmsql_cluster_certificate_authority_ends_timestamp_seconds" {
				at = append(at, f.GetMetric()[0].GetGauge().GetValue())
			}
		}
		return at
	}
	m.ObserveAuthority(c, ca)
	m.ObserveAuthority(c, nil) // it cannot be read now
	if got := ends(); len(got) != 1 || got[0] != float64(ca.Ends().Unix()) {
		t.Errorf("it ends at %v, want %d", got, ca.Ends().Unix())
	}
	m.Forget(clusterKey)
	if got := ends(); got != nil {
		t.Errorf("the cluster is gone, and its authority ends at %v", got)
	}
}

func TestDroppedLinesOfTheLogAreCounted(t *testing.T) {
	reg, lost := prometheus.NewRegistry(), uint64(0)
	MeterLog(reg, nil)
	MeterLog(reg, func() uint64 { return lost })
	lost = 3
	all, err := reg.Gather()
	if err != nil || len(all) != 1 || all[0].GetName() != "cnmsql_operator_log_dropped_lines_total" ||
		all[0].GetMetric()[0].GetCounter().GetValue() != 3 {
		t.Errorf("counted: %v, %v", all, err)
	}
}

package instance

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// scraped is the value of the series that begins so.
func (w *world) scraped(n *node, series string) float64 {
	w.t.Helper()
	_, text := w.get(n, n.opt.MetricsPort, "/metrics")
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + `[^ ]* (.*)$`).FindStringSubmatch(text)
	if found == nil {
		w.t.Fatalf("the metrics of %s lack %s:\n%s", n.opt.Instance, series, text)
	}
	value, err := strconv.ParseFloat(found[1], 64)
	must(w.t, err)
	return value
}

func TestMetricsOfAGroupAreThoseOfItsMembersOnly(t *testing.T) {
	inAll(t)
	w := newGroup(t, 2)
	one, two := w.start(1), w.start(2)
	w.madeBy(one)
	w.joinGroup(two, one)
	before := w.scraped(one, w.statOf(one, "transactions_local_proposed_total"))
	w.exec(w.app(one), "CREATE TABLE t (id INT PRIMARY KEY)")
	for i := range 3 {
		w.exec(w.app(one), fmt.Sprintf("INSERT INTO t VALUES (%d)", i))
	}
	if got := w.scraped(one, w.statOf(one, "transactions_local_proposed_total")) - before; got != 4 {
		t.Errorf("the primary proposed 4 transactions, and its metrics say %v", got)
	}
	for _, n := range []*node{one, two} {
		for series, want := range map[string]float64{
			"cnmsql_group_online": 1, "cnmsql_group_has_majority": 1,
			w.infoOf(one, core.MemberPrimary): 1, w.infoOf(two, core.MemberSecondary): 1,
			w.statOf(n, "conflicts_detected_total"): 0,
		} {
			if got := w.scraped(n, series); got != want {
				t.Errorf("%s of %s is %v, not %v", series, n.opt.Instance, got, want)
			}
		}
	}
	w.kube.edit(func(c *v1alpha1.Cluster) { c.Status.FencedInstances = []string{two.opt.Instance} })
	w.await(two, "fenced", func(r core.Report) bool { return r.State == core.Fenced && r.Server != nil })
	if w.scraped(two, "cnmsql_group_online") != 0 || w.scraped(two, "cnmsql_group_has_majority") != 0 {
		t.Error("a member that left is said to be online")
	}
}

func TestAnInstanceThatIsNoMemberHasNoMetricsOfAGroup(t *testing.T) {
	w := newWorld(t, nil)
	alone := w.start(1)
	w.bootstrap(alone)
	if _, text := w.get(alone, alone.opt.MetricsPort, "/metrics"); strings.Contains(text, "cnmsql_group_") {
		t.Error("an instance that is no member has metrics of a group")
	}
}

func (w *world) statOf(n *node, name string) string {
	return fmt.Sprintf(`cnmsql_group_member_%s{member="%s",member_id="%s"`, name, w.hostLabel(n),
		n.report().Server.UUID)
}

func (w *world) infoOf(n *node, role core.MemberRole) string {
	return fmt.Sprintf(`cnmsql_group_member_info{member="%s",member_id="%s",role="%s",state="ONLINE"`, w.hostLabel(n),
		n.report().Server.UUID, role)
}

// hostLabel: hosts are addresses here.
func (w *world) hostLabel(n *node) string {
	label := core.InstanceIn(n.opt.Listen)
	return label
}

// Package alerts holds the alerts of the chart against what is exported, against what was seen to
// happen, and against the documents.
package alerts

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/yaml"

	"cnmsql.co/internal/backups"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/doctable"
	"cnmsql.co/internal/exporter"
	"cnmsql.co/internal/operator"
	"cnmsql.co/internal/verify"
)

var _ = flag.Bool("rewrite", false, "write the table of the alerts into docs/status.md")

const (
	file = "../../charts/cnmsql/alerts.yaml"
	docs = "../../docs/"
)

type rule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

func rules(t *testing.T) []rule {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal(text, &all); err != nil || len(all.Groups) != 1 || len(all.Groups[0].Rules) == 0 {
		t.Fatalf("%s: %v", file, err)
	}
	return all.Groups[0].Rules
}

// ofScrape are labels that Prometheus gives what it scrapes.
var ofScrape = []string{"namespace", "pod", "instance"}

// exported are the labels of each metric that the operator and the instances have.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	reg, all := prometheus.NewRegistry(), map[string][]string{}
	operator.NewMetrics(reg)
	operator.MeterLog(reg, func() uint64 { return 0 })
	verify.NewMetrics(reg)
	backups.NewMetrics(reg, nil)
	descs := make(chan *prometheus.Desc)
	go func() { reg.Describe(descs); close(descs) }()
	form := regexp.MustCompile(`fqName: "([a-z0-9_]+)".*variableLabels: \{([a-z_,]*)\}`)
	add := func(d *prometheus.Desc) {
		found := form.FindStringSubmatch(d.String())
		if found == nil {
			t.Fatalf("a description of another form: %s", d)
		}
		all[found[1]] = strings.Split(found[2], ",")
	}
	for d := range descs {
		add(d)
	}
	exporter.Status(map[string]string{"Uptime": "1"}, func(m prometheus.Metric) { add(m.Desc()) })
	for name, labels := range ofInstances(t) {
		all[name] = labels
	}
	if len(all) < 40 {
		t.Fatalf("only %d metrics are found: %v", len(all), all)
	}
	return all
}

// ofInstances are those of an instance, which depend on how it is: they are read from the source.
// What is put or flagged has no labels of its own.
func ofInstances(t *testing.T) map[string][]string {
	t.Helper()
	all, paths := map[string][]string{}, []string{"metrics.go", "groupmetrics.go"}
	for _, path := range paths {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../../internal/instance", path), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			lit, is := n.(*ast.BasicLit)
			if !is || lit.Kind != token.STRING {
				return true
			}
			text, _ := strconv.Unquote(lit.Value)
			switch {
			case strings.HasPrefix(text, "transactions_"), strings.HasPrefix(text, "conflicts_"):
				all["cnmsql_group_member_"+text] = []string{"member", "member_id"}
			case strings.HasPrefix(text, "cnmsql_") || text == "mysql_up":
				all[text] = nil
			}
			return true
		})
	}
	all["cnmsql_state"] = []string{"state", "reason"}
	all["cnmsql_group_member_info"] = []string{"member", "member_id", "state", "role", "version"}
	return all
}

var (
	metricName = regexp.MustCompile(`\b(?:cnmsql|mysql)_[a-z0-9_]+`)
	matcher    = regexp.MustCompile(`(cnmsql_[a-z0-9_]+)\{([a-z]+)(!?=~?)"([^"]*)"\}`)
	grouping   = regexp.MustCompile(`\b(?:by|on) \(([a-z, ]+)\)`)
)

// TestAlertsAreOfMetricsThatAreExported: of a name, a label or a value that nobody exports, an alert
// never fires.
func TestAlertsAreOfMetricsThatAreExported(t *testing.T) {
	all := exported(t)
	for _, r := range rules(t) {
		names := metricName.FindAllString(r.Expr, -1)
		for _, name := range names {
			if _, is := all[name]; !is {
				t.Errorf("%s: nobody exports %s", r.Alert, name)
			}
			for _, labels := range grouping.FindAllStringSubmatch(r.Expr, -1) {
				for _, label := range strings.Split(labels[1], ", ") {
					if !slices.Contains(all[name], label) && !slices.Contains(ofScrape, label) {
						t.Errorf("%s: %s has no label %s", r.Alert, name, label)
					}
				}
			}
		}
		for _, m := range matcher.FindAllStringSubmatch(r.Expr, -1) {
			if !slices.Contains(all[m[1]], m[2]) {
				t.Errorf("%s: %s has no label %s", r.Alert, m[1], m[2])
			}
			if form := regexp.MustCompile("^(" + m[4] + ")$"); !slices.ContainsFunc(values(m[2]), form.MatchString) {
				t.Errorf("%s: the label %s is never %s", r.Alert, m[2], m[4])
			}
		}
	}
}

// TestAlertsOfClustersFireOnceHoweverManyOperatorsExport holds that each series of an operator is aggregated, or is
// only what others are held against: two operators run, and some series both have.
func TestAlertsOfClustersFireOnceHoweverManyOperatorsExport(t *testing.T) {
	aside := regexp.MustCompile(`(and|unless) on \([a-z, ]+\) [a-z_]+| by \([a-z, ]+\)|\{[^}]*\}`)
	call := regexp.MustCompile(`([a-z_]*) ?\(([^()]*)\)`)
	single := regexp.MustCompile(`cnmsql_cluster_[a-z_]+`)
	for _, r := range rules(t) {
		left := aside.ReplaceAllString(r.Expr, "")
		for call.MatchString(left) {
			left = call.ReplaceAllStringFunc(left, func(one string) string {
				parts := call.FindStringSubmatch(one)
				if slices.Contains([]string{"max", "min", "count"}, parts[1]) {
					return "1"
				}
				return parts[2]
			})
		}
		if name := single.FindString(left); name != "" {
			t.Errorf("%s fires once for each operator that exports %s", r.Alert, name)
		}
	}
}

func TestTheAlertOfNoticesIsOfAllThatAwaitAHuman(t *testing.T) {
	var want []string
	for _, e := range core.Catalogue() {
		if e.Attention() == core.AwaitsHuman && !slices.Contains(want, e.Name) {
			want = append(want, e.Name)
		}
	}
	slices.Sort(want)
	for _, r := range rules(t) {
		if r.Alert != "CnmsqlNotice" {
			continue
		}
		if m := matcher.FindStringSubmatch(r.Expr); m == nil || m[4] != strings.Join(want, "|") {
			t.Errorf("those of internal/core/notices.go are reason=~%q, and the alert is of %s",
				strings.Join(want, "|"), r.Expr)
		}
	}
}

// values are those that a label may have.
func values(label string) (all []string) {
	switch label {
	case "phase":
		all = []string{"Deleting"}
		for _, p := range []core.Phase{core.PhaseProvisioning, core.PhaseHealthy, core.PhaseDegraded,
			core.PhaseSwitchover, core.PhaseFailover, core.PhaseScaling, core.PhaseUpdating, core.PhaseBlocked} {
			all = append(all, string(p))
		}
	case "status":
		all = []string{string(core.DurableYes), string(core.DurableNo), string(core.DurableUnknown)}
	default:
		for _, e := range core.Catalogue() {
			all = append(all, e.Name)
		}
	}
	return all
}

// accounts of MySQL look like metrics.
var accounts = []string{"cnmsql_replication", "cnmsql_manager", "cnmsql_backup"}

// TestDocumentsNameNoMetricThatNobodyExports: a star stands for several.
func TestDocumentsNameNoMetricThatNobodyExports(t *testing.T) {
	all := exported(t)
	pages, err := filepath.Glob(docs + "*.md")
	if err != nil || len(pages) < 20 {
		t.Fatal("no documents", err)
	}
	named := regexp.MustCompile("`cnmsql_[a-z0-9_]+[`{*]|cnmsql_cluster_[a-z0-9_]+\\*?")
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range named.FindAllString(string(text), -1) {
			bare := strings.Trim(name, "`{*")
			_, is := all[bare]
			for other := range all {
				is = is || strings.HasSuffix(name, "*") && strings.HasPrefix(other, bare)
			}
			if !is && !slices.Contains(accounts, bare) {
				t.Errorf("%s names %s, which nobody exports", page, bare)
			}
		}
	}
}

// TestNobodyCountsAGaugeUp refuses rate of a gauge: it and its siblings take each fall for a restart of a counter,
// and are above zero whatever becomes of the gauge. The project's counters end in _total.
func TestNobodyCountsAGaugeUp(t *testing.T) {
	counted := regexp.MustCompile(`\b(i?rate|increase)\((cnmsql_[a-z0-9_]+)`)
	pages, err := filepath.Glob(docs + "*.md")
	if err != nil || len(pages) < 20 {
		t.Fatal("no documents", err)
	}
	for _, path := range append(pages, file) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range counted.FindAllStringSubmatch(string(text), -1) {
			if !strings.HasSuffix(found[2], "_total") {
				t.Errorf("%s: %s of %s, which is no counter: deriv or delta", path, found[1], found[2])
			}
		}
	}
}

func TestEveryAlertHasWhatAHumanNeeds(t *testing.T) {
	var table [][]string
	for _, r := range rules(t) {
		page, heading, _ := strings.Cut(strings.TrimPrefix(r.Annotations["runbook"], "docs/"), "#")
		text, err := os.ReadFile(docs + page)
		if err != nil || heading != "" && !slices.Contains(anchors(string(text)), heading) {
			t.Errorf("%s: there is no %s: %v", r.Alert, r.Annotations["runbook"], err)
		}
		if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) {
			t.Errorf("%s: severity %q", r.Alert, r.Labels["severity"])
		}
		_, means, _ := strings.Cut(r.Annotations["summary"], ": ")
		link := page
		if heading != "" {
			link += "#" + heading
		}
		wait := r.For
		if wait == "0s" {
			wait = "at once"
		}
		table = append(table, []string{"`" + r.Alert + "`, " + r.Labels["severity"],
			"`" + strings.ReplaceAll(r.Expr, "|", `\|`) + "`", wait, means, "[" + strings.TrimSuffix(page, ".md") +
				"](" + link + ")"})
	}
	doctable.Check(t, docs+"status.md", doctable.Table{Name: "alerts",
		Head: []string{"alert, severity", "expression", "for", "means", "what to do"}, Rows: table})
}

// anchors are the headings of a page, as links name them.
func anchors(page string) (all []string) {
	strange := regexp.MustCompile("[^a-z0-9 _-]")
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "#") {
			title := strange.ReplaceAllString(strings.ToLower(strings.TrimLeft(strings.TrimSpace(line), "# ")), "")
			all = append(all, strings.ReplaceAll(title, " ", "-"))
		}
	}
	return all
}

// TestAlertsFire plays the series that were seen in outages.
func TestAlertsFire(t *testing.T) {
	promtool := os.Getenv("CNMSQL_PROMTOOL")
	if promtool == "" {
		t.Skip("CNMSQL_PROMTOOL does not name promtool: make test-alerts")
	}
	for _, args := range [][]string{{"check", "rules", file}, {"test", "rules", "testdata/outages.yaml"}} {
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

package exporter

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// TestNamesAreThoseOfMysqldExporter holds names, labels and values against what mysqld_exporter
// 0.14 of Debian made of the same server, 9.7.4, at the same moment but for some counters.
func TestNamesAreThoseOfMysqldExporter(t *testing.T) {
	theirs := map[string]string{}
	for line := range strings.Lines(read(t, "exporter-0.14.txt")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		if !strings.Contains(line, "{") {
			name, value, _ = strings.Cut(strings.TrimSpace(line), " ")
		}
		theirs[strings.TrimSuffix(name, "}")] = value
	}
	ours := map[string]string{}
	put := func(m prometheus.Metric) {
		name, value := text(t, m)
		if _, twice := ours[name]; twice {
			t.Errorf("%s is told twice", name)
		}
		ours[name] = value
	}
	Status(pairs(t, "status.txt"), put)
	Variables(pairs(t, "variables.txt"), put)
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		if _, told := ours[name]; !told {
			t.Errorf("%s = %s is missing", name, theirs[name])
		} else if strings.HasPrefix(name, "mysql_global_variables_") && ours[name] != theirs[name] {
			t.Errorf("%s = %s, not %s", name, ours[name], theirs[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		if _, told := theirs[name]; !told {
			t.Errorf("%s is none of theirs", name)
		}
	}
}

func read(t testing.TB, file string) string {
	t.Helper()
	all, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

func pairs(t testing.TB, file string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(read(t, file)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		out[name] = value
	}
	return out
}

// text is a metric as it is scraped.
func text(t *testing.T, m prometheus.Metric) (name, value string) {
	t.Helper()
	var d dto.Metric
	if err := m.Write(&d); err != nil {
		t.Fatal(err)
	}
	_, name, _ = strings.Cut(m.Desc().String(), `fqName: "`)
	name, _, _ = strings.Cut(name, `"`)
	var labels []string
	for _, l := range d.GetLabel() {
		labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
	}
	if len(labels) > 0 {
		name += "{" + strings.Join(labels, ",")
	}
	v := d.GetGauge().GetValue() + d.GetCounter().GetValue() + d.GetUntyped().GetValue()
	return name, fmt.Sprintf("%v", v)
}

func BenchmarkScrape(b *testing.B) {
	status, variables := pairs(b, "status.txt"), pairs(b, "variables.txt")
	for b.Loop() {
		Status(status, func(prometheus.Metric) {})
		Variables(variables, func(prometheus.Metric) {})
	}
}

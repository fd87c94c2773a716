package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"cnmsql.co/internal/operator"
	"cnmsql.co/test/scalebench/scale"
)

// TestMain has the test binary be the operator, as a process of its own.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != "operator" {
		os.Exit(m.Run())
	}
	conf, err := ctrl.GetConfig()
	if err == nil {
		err = operator.Run(context.Background(), conf, operator.Options{MetricsAddress: metricsAddress,
			ProbeAddress: "0", OperatorImage: "operator", DefaultImage: "mysql:9.7", Workers: 16})
	}
	if err != nil {
		os.Exit(1)
	}
}

// TestAnOperatorAtRest measures a few Clusters for a moment: all that is counted comes out, and
// at rest the operator asks the API server for nothing and writes nothing.
func TestAnOperatorAtRest(t *testing.T) {
	if os.Getenv("CNMSQL_KUBE_BIN") == "" {
		t.Skip("CNMSQL_KUBE_BIN is not set: make test-real sets it")
	}
	t.Chdir("../..")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f := &scale.Figures{Run: &scale.Run{}}
	o := options{operator: self, clusters: "3", namespaces: 2, rest: 20 * time.Second, settling: 5 * time.Second,
		crashes: 2}
	if err := measure(t.Context(), o, t.TempDir(), f); err != nil {
		t.Fatal(err)
	}
	for _, r := range f.Rows {
		if r.Reads != 0 || r.Writes != 0 {
			t.Errorf("with %d Clusters at rest it sends %.2f and %.2f requests a second", r.Clusters, r.Reads, r.Writes)
		}
		if r.CPU <= 0 || r.Resident < 10 || r.Peak < r.Resident || r.StartUp <= 0 || r.One.Primaries != o.crashes ||
			r.One.Median <= 0 {
			t.Errorf("this cannot be: %+v", r)
		}
	}
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("<!-- scale, made by make generate from benchmarks.json -->\n"+
		"<!-- end of what is made of scale -->\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.WritePage(page); err != nil {
		t.Error(err)
	}
	t.Log(f)
}

package plugin

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
)

func TestAStatusOfThePastDoesNotTellWhoTookWritesLast(t *testing.T) {
	heard := func(name string, view int64) word {
		return word{Report: core.Known(core.Report{Instance: name, ViewEpoch: view}, time.Now(), time.Now())}
	}
	for name, r := range map[string]struct {
		blocked core.Reason
		said    words
		want    string
	}{
		"the operator says so": {core.RefusalStatusRegressed, words{"demo-1": heard("demo-1", 4), "demo-3": {}},
			"Which instance took writes last is NOT KNOWN: demo-3 did not answer, and may take writes now."},
		"an instance has seen a later one": {core.RefusalNoProof,
			words{"demo-1": heard("demo-1", 4), "demo-2": heard("demo-2", 6), "demo-3": {}},
			"Which instance took writes last is NOT KNOWN: demo-3 did not answer, and may take writes now."},
		"all answer": {core.RefusalStatusRegressed, words{"demo-1": heard("demo-1", 4), "demo-2": heard("demo-2", 6)},
			"of the instances that answer from here, no other takes writes now."},
	} {
		s := blocked().Cluster.Status
		s.Blocked = &v1alpha1.Notice{Reason: string(r.blocked)}
		for _, to := range []string{"demo-1", "demo-2"} {
			got := strings.Join(whoElseWrites(&s, to, r.said), "\n")
			if !strings.Contains(got, r.want) || strings.Contains(got, "no other takes any.") {
				t.Errorf("%s, to %s: %q is not in %q", name, to, r.want, got)
			}
		}
	}
}

func TestFailoverAsksWhoHasAPodAndIsNotInTheStatus(t *testing.T) {
	f := blocked()
	f.Cluster.Status.Blocked = &v1alpha1.Notice{Reason: string(core.RefusalStatusRegressed)}
	newer := podOf("demo-4")
	maps.Copy(newer.Labels, resources.InstanceLabels(f.Cluster))
	s := newScene(t, f.Cluster, nil, newer)
	s.managers(f)
	s.answers("no\n")
	o := &overrider{s.caller}
	mustFail(t, o.failOver(context.Background(), "2", time.Second), "nothing was done")
	s.mustSay("demo-1, demo-4 did not answer, and may take writes now.")
	s.mustSay("demo-4: NOT KNOWN")
}

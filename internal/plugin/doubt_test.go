package plugin

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/internal/core"
)

func (f *Facts) notReadyFor(name string, d time.Duration) {
	f.notReady(name)
	f.Pods[name].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse,
		LastTransitionTime: metav1.NewTime(now.Add(-d))}}
}

// TestAHealthyClusterThatLacksAnInstanceIsDoubted: the phase is the word of an operator that may
// be dead, and then nobody makes the instance again.
func TestAHealthyClusterThatLacksAnInstanceIsDoubted(t *testing.T) {
	for name, x := range map[string]struct {
		change func(*Facts)
		want   string
	}{
		"nothing is wrong":    {func(*Facts) {}, ""},
		"a Pod is gone":       {func(f *Facts) { delete(f.Pods, "demo-3") }, "demo-3 has no Pod"},
		"not ready for long":  {func(f *Facts) { f.notReadyFor("demo-2", oddAfter) }, "demo-2 is not ready for 15s"},
		"not ready just now":  {func(f *Facts) { f.notReadyFor("demo-2", time.Second) }, ""},
		"Pods cannot be read": {func(f *Facts) { f.Pods = nil }, ""},
		"the operator has said so": {func(f *Facts) {
			delete(f.Pods, "demo-3")
			f.phase(core.PhaseDegraded, core.PrimaryHealthy, "demo-3 is missing")
		}, ""},
	} {
		f := healthy()
		x.change(f)
		r := Build(*f)
		todo := strings.Join(r.ToDo, "\n")
		if r.Doubt != x.want || strings.Contains(todo, "does not fit what is seen") != (x.want != "") {
			t.Errorf("%s: want %q, got %q and %q", name, x.want, r.Doubt, todo)
		}
		var out strings.Builder
		if err := WriteTable(&out, r); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "DOES NOT FIT: "+x.want) != (x.want != "") {
			t.Errorf("%s: %s", name, out.String())
		}
	}
}

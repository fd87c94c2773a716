package plugin

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
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
		"the primary takes no writes": {func(f *Facts) {
			f.phase(core.PhaseDegraded, core.PrimaryHealthy, "demo-3 is missing")
			f.Live["demo-1"].Report.WritableEpoch, f.Live["demo-1"].Report.State = 0, core.Stopped
		}, "demo-1 is Stopped and does not accept writes"},
		"the operator has said so": {func(f *Facts) {
			delete(f.Pods, "demo-3")
			f.phase(core.PhaseDegraded, core.PrimaryHealthy, "demo-3 is missing")
		}, ""},
	} {
		f := healthy()
		x.change(f)
		r := Build(*f)
		todo := strings.Join(r.ToDo, "\n")
		if r.Doubt != x.want || strings.Contains(todo, "contradicts what is seen") != (x.want != "") {
			t.Errorf("%s: want %q, got %q and %q", name, x.want, r.Doubt, todo)
		}
		var out strings.Builder
		if err := WriteTable(&out, r); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "CONTRADICTS what is seen: "+x.want) != (x.want != "") {
			t.Errorf("%s: %s", name, out.String())
		}
	}
}

// listed is what status without a name says of a healthy Cluster, of whose instances some have Pods.
func listed(t *testing.T, mayList bool, names ...string) string {
	t.Helper()
	c := healthy().Cluster
	var pods []client.Object
	for _, name := range names {
		pod := podOf(name)
		maps.Copy(pod.Labels, resources.InstanceLabels(c))
		pods = append(pods, pod)
	}
	s := newScene(t, c, nil, pods...)
	s.client = interceptor.NewClient(s.client, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, is := list.(*corev1.PodList); is && !mayList {
				return errors.New("jo may not")
			}
			return c.List(ctx, list, opts...)
		}})
	var out strings.Builder
	if err := showAll(t.Context(), &out, &session{client: s.client, namespace: "shop"}, false, ""); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestTheListDoubtsAnOperatorThatSaysNothingOfALostPod(t *testing.T) {
	for _, x := range []struct {
		mayList bool
		pods    []string
		want    []string
	}{
		{true, []string{"demo-1", "demo-2", "demo-3"}, []string{"Healthy yes", "compared only with which Pods"}},
		{true, []string{"demo-2", "demo-3"}, []string{"Healthy unknown", "CONTRADICTS what is seen: demo-1"}},
		{true, nil, []string{"Healthy unknown", "demo-1 has no Pod, demo-2 has no Pod, demo-3 has no Pod"}},
		{false, nil, []string{"Healthy yes", "compared with nothing, because Pods could not be read (jo may not)"}},
	} {
		got := strings.Join(strings.Fields(listed(t, x.mayList, x.pods...)), " ")
		for _, want := range x.want {
			if !strings.Contains(got, want) {
				t.Errorf("with Pods %q (may list: %t): want %q in: %s", x.pods, x.mayList, want, got)
			}
		}
	}
}

// The manager of a mysqld that hangs says in which epoch it let clients write, and mysqld says nothing.
func TestOfAPrimaryThatHangsNobodyKnowsWhetherItTakesWrites(t *testing.T) {
	for name, x := range map[string]struct {
		f     *Facts
		hangs string
		want  string
	}{
		"async": {healthy(), "demo-1", "demo-1's mysqld runs and does not answer"},
		"group": {online(), "demo-1", "demo-1's mysqld runs and does not answer"},
		"elected meanwhile": {deposed(), "demo-2", "demo-1 says that it is not the primary of a group with a quorum, " +
			"and demo-2 did not say"},
	} {
		x.f.live(x.hangs).State, x.f.live(x.hangs).Server = core.Hung, nil
		if r := Build(*x.f); r.Writable != WritableUnknown || !strings.Contains(r.WritableBecause, x.want) {
			t.Errorf("%s: writable is %s: %s", name, r.Writable, r.WritableBecause)
		}
	}
}

// deposed is a group whose primary follows another by its own word, and the operator does not know it yet.
func deposed() *Facts {
	f := online()
	f.live("demo-1").WritableEpoch = 0
	f.live("demo-1").Server.Group.Role = core.MemberSecondary
	return f
}

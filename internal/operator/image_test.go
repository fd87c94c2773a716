package operator

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/observation"
	"cnmsql.co/internal/resources"
)

// An image that was named and taken back may never have run: it is not the one that is kept.
// A Pod that was made from another image than the spec's is out of date by that alone.
func TestAPodIsMadeFromAnotherImage(t *testing.T) {
	c := aCluster()
	c.Spec.ImageName = "mysql:9.7.4"
	claim, err := resources.VolumeClaim(c, "c-1", 1)
	must(t, err)
	a := newAPI(t, claim)
	act := anActor(a)
	giveAccounts(t, a)
	facts := func() core.Pod {
		t.Helper()
		var pod corev1.Pod
		must(t, a.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "c-1"}, &pod))
		kept, err := slim(&pod)
		must(t, err)
		return observation.PodFacts(kept.(*corev1.Pod), act.wanted(t.Context(), c, "c-1", 1))
	}
	must(t, act.change(t.Context(), c, anAuthority(t),
		core.CreatePod{Instance: "c-1", Ordinal: 1, Image: "mysql:8.4.9"}))
	if got := facts(); got.Image != "mysql:8.4.9" || got.Current || !got.CurrentButImage {
		t.Errorf("from the former image: %+v", got)
	}
	c.Spec.MaxStopDelay++
	if got := facts(); got.Current || got.CurrentButImage {
		t.Errorf("of another spec besides: %+v", got)
	}
	c.Spec.MaxStopDelay--
	c.Spec.ImageName = "mysql:8.4.9"
	if got := facts(); !got.Current || !got.CurrentButImage {
		t.Errorf("when the image is taken back: %+v", got)
	}
}

func TestAnImageIsKeptOnceAllRunIt(t *testing.T) {
	c := aCluster()
	c.Status.EstablishedAt, c.Status.Image = new(metav1.NowMicro()), "mysql:9.7.4"
	o := core.Observation{Instances: make([]core.Instance, 2)}
	runs := func(image string, all bool) {
		c.Spec.ImageName = image
		for i := range o.Instances {
			pod := core.Pod{Exists: true, Current: i == 0 || all, Ready: true}
			o.Instances[i].Pod = core.Known(pod, o.Now, o.Now)
		}
		noteImage(c, o, "mysql:10")
	}
	for _, step := range []struct {
		named string
		all   bool
		want  string
	}{
		{"mysql:typo", false, "mysql:9.7.4"},
		{"", false, "mysql:9.7.4"},
		{"", true, "mysql:9.7.4"},
		{"mysql:9.8", false, "mysql:9.7.4"},
		{"mysql:9.8", true, "mysql:9.8"},
		{"", true, "mysql:9.8"},
	} {
		if runs(step.named, step.all); c.Status.Image != step.want {
			t.Errorf("named %q, all run it: %t: %s is kept, want %s", step.named, step.all, c.Status.Image, step.want)
		}
		if is := resources.Image(c, "mysql:10"); step.named == "" && is != step.want {
			t.Errorf("Pods are made from %s, want %s", is, step.want)
		}
	}
	fresh := aCluster()
	fresh.Status.Image = ""
	if noteImage(fresh, core.Observation{}, "mysql:10"); fresh.Status.Image != "mysql:10" {
		t.Errorf("of a Cluster that keeps none yet %q is kept", fresh.Status.Image)
	}
}

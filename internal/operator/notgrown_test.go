package operator

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// aVolumeOf has a claim that asks for a size, and a volume that has one.
func aVolumeOf(asks, has string) *corev1.PersistentVolumeClaim {
	claim := aVolume("c-1", "claim")
	claim.Labels = map[string]string{v1alpha1.LabelCluster: "c", v1alpha1.LabelInstance: "c-1"}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(asks)}
	claim.Status.Phase = corev1.ClaimBound
	claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(has)}
	return claim
}

// TestAVolumeThatDoesNotGrowIsTold at once where Kubernetes says that it failed, and otherwise when it takes long.
func TestAVolumeThatDoesNotGrowIsTold(t *testing.T) {
	says := func(kind corev1.PersistentVolumeClaimConditionType) func(*corev1.PersistentVolumeClaim) {
		return func(claim *corev1.PersistentVolumeClaim) {
			claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: kind,
				Status: corev1.ConditionTrue, Message: "the driver's words"}}
		}
	}
	for name, of := range map[string]struct {
		has           string
		with          func(*corev1.PersistentVolumeClaim)
		first, at10th string
	}{
		"it has grown":      {has: "2Gi", with: says("Resizing")},
		"nobody answers":    {has: "1Gi", at10th: "c-1 has 1Gi of 2Gi (nobody grows it"},
		"it goes on":        {has: "1Gi", with: says("Resizing"), at10th: "(Resizing: the driver's words)"},
		"it waits for Pods": {has: "1Gi", with: says("FileSystemResizePending"), at10th: "FileSystemResizePending: "},
		"an error": {has: "1Gi", with: says("ControllerResizeError"), first: "(ControllerResizeError: the driver's",
			at10th: "(ControllerResizeError: the driver's"},
		"not feasible": {has: "1Gi", with: func(claim *corev1.PersistentVolumeClaim) {
			claim.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{
				corev1.ResourceStorage: corev1.PersistentVolumeClaimNodeResizeInfeasible}
		}, first: "(NodeResizeInfeasible)", at10th: "(NodeResizeInfeasible)"},
		"it has no volume yet": {has: "1Gi", with: func(claim *corev1.PersistentVolumeClaim) {
			claim.Status.Phase = corev1.ClaimPending
		}},
	} {
		claim := aVolumeOf("2Gi", of.has)
		if of.with != nil {
			of.with(claim)
		}
		server, c := newAPI(t, claim), aCluster()
		c.Status.InstanceNames = []string{"c-1", "c-2"}
		p := newPrerequisites(server, server)
		told := func(want string) {
			t.Helper()
			_, asides, _ := p.ensure(t.Context(), c)
			is := ""
			for _, aside := range asides {
				if aside.Reason == core.ReasonNotGrown {
					is += aside.Message
				}
			}
			if (is != "") != (want != "") || !strings.Contains(is, want) {
				t.Errorf("%s: %q is told, and not %q", name, is, want)
			}
		}
		told(of.first)
		if b, known := p.behind[claim.UID]; known {
			b.since = b.since.Add(-growsWithin)
			p.behind[claim.UID] = b
		}
		told(of.at10th)
		p.forget(types.NamespacedName{Namespace: "ns", Name: "c"})
		if len(p.behind) > 0 {
			t.Errorf("%s: it is remembered of a Cluster that is gone", name)
		}
	}
}

// TestAVolumeThatHasGrownIsForgotten so that the next growth has its time, as one that is asked for meanwhile has.
func TestAVolumeThatHasGrownIsForgotten(t *testing.T) {
	server := newAPI(t)
	p, c := newPrerequisites(server, server), aCluster()
	first := p.behindSince(c, aVolumeOf("2Gi", "1Gi"))
	if again := p.behindSince(c, aVolumeOf("2Gi", "1Gi")); !again.Equal(first) || first.IsZero() {
		t.Errorf("it is behind since %s, and before since %s", again, first)
	}
	if more := p.behindSince(c, aVolumeOf("3Gi", "1Gi")); !more.After(first) {
		t.Error("a larger size has no time of its own")
	}
	if since := p.behindSince(c, aVolumeOf("3Gi", "3Gi")); !since.IsZero() || len(p.behind) != 0 {
		t.Errorf("it has grown, and is behind since %s", since)
	}
}

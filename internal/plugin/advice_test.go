package plugin

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// advises reports whether something to do has this in its text.
func advises(f *Facts, text string) bool {
	return slices.ContainsFunc(Build(*f).ToDo, func(line string) bool { return strings.Contains(line, text) })
}

func TestATaintIsAdvisedOnlyWhereTheNodeMayBeWhatFails(t *testing.T) {
	const taint = "kubectl taint node"
	if advises(blocked(), taint) {
		t.Error("it is advised beside the operator's own word on the proof")
	}
	f := blocked()
	f.phase(core.PhaseFailover, core.PrimaryUnreachable, "the manager of demo-1 does not answer")
	if !advises(f, "only if node n1 is powered off (NotReady is not enough): "+taint) {
		t.Errorf("it is not advised: %q", Build(*f).ToDo)
	}
	f.phase(core.PhaseDegraded, core.PrimaryUnreachableButReplicasStream, "replicas receive from demo-1")
	if advises(f, taint) || !advises(f, "see why demo-1 cannot be reached") {
		t.Errorf("replicas receive from it: %q", Build(*f).ToDo)
	}
}

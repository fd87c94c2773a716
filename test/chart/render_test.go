package chart

import (
	"bytes"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// helm is the path of the Helm that make generate uses, built when it is asked for first.
var helm = sync.OnceValues(func() (string, error) {
	var why bytes.Buffer
	cmd := exec.Command("go", "tool", "-modfile=tools/dev/go.mod", "-n", "helm")
	cmd.Dir, cmd.Stderr = root, &why
	path, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, why.String())
	}
	return strings.TrimSpace(string(path)), nil
})

// render makes the manifests of the chart with these values, each "name=value", or fails as Helm does.
func render(t *testing.T, values ...string) (string, error) {
	t.Helper()
	by, err := helm()
	if err != nil {
		t.Skipf("there is no Helm to make the chart's manifests: %v", err)
	}
	args := []string{"template", "cnmsql", "charts/cnmsql", "--namespace", "cnmsql-system"}
	for _, value := range values {
		args = append(args, "--set-json", value)
	}
	var why bytes.Buffer
	cmd := exec.Command(by, args...)
	cmd.Dir, cmd.Stderr = root, &why
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, why.String())
	}
	return string(out), nil
}

// find reads the object of a kind into it, and reports whether there is one.
func find(t *testing.T, manifests, kind string, into any) bool {
	t.Helper()
	for part := range strings.SplitSeq(manifests, "\n---\n") {
		var is metav1.TypeMeta
		if yaml.Unmarshal([]byte(part), &is) != nil || is.Kind != kind {
			continue
		}
		if err := yaml.Unmarshal([]byte(part), into); err != nil {
			t.Fatal(err)
		}
		return true
	}
	return false
}

// TestADrainTakesOneOperatorAtATime holds where there are several; one alone must not hold up a drain.
func TestADrainTakesOneOperatorAtATime(t *testing.T) {
	for replicas, want := range map[int]bool{1: false, 2: true} {
		all, err := render(t, fmt.Sprintf("replicas=%d", replicas))
		if err != nil {
			t.Fatal(err)
		}
		var budget policyv1.PodDisruptionBudget
		var pods appsv1.Deployment
		if has := find(t, all, "PodDisruptionBudget", &budget); has != want || !find(t, all, "Deployment", &pods) {
			t.Errorf("with %d replicas there is a budget: %t", replicas, has)
		}
		if !want {
			continue
		}
		of, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil || of.Empty() || !of.Matches(labels.Set(pods.Spec.Template.Labels)) {
			t.Errorf("it selects %s, and not the operator's Pods: %v", of, err)
		}
		if most := budget.Spec.MaxUnavailable; most == nil || most.IntValue() != 1 || budget.Spec.MinAvailable != nil {
			t.Errorf("it lets a drain take %v", most)
		}
	}
}

// TestTheLossOfANodeLeavesAnOperator checks that operators of one release do not stand on one node, and that one that
// is lost with its node is made again soon; tolerations of the user's come on top.
func TestTheLossOfANodeLeavesAnOperator(t *testing.T) {
	all, err := render(t, `tolerations=[{"key":"infra","operator":"Exists"}]`)
	if err != nil {
		t.Fatal(err)
	}
	var operators appsv1.Deployment
	if !find(t, all, "Deployment", &operators) {
		t.Fatal("there is no Deployment")
	}
	pods := operators.Spec.Template
	spread := pods.Spec.TopologySpreadConstraints
	if len(spread) != 1 || spread[0].MaxSkew != 1 || spread[0].TopologyKey != corev1.LabelHostname ||
		spread[0].WhenUnsatisfiable != corev1.DoNotSchedule || spread[0].NodeTaintsPolicy == nil ||
		*spread[0].NodeTaintsPolicy != corev1.NodeInclusionPolicyHonor ||
		!slices.Equal(spread[0].MatchLabelKeys, []string{appsv1.DefaultDeploymentUniqueLabelKey}) {
		t.Errorf("they are spread by %+v", spread)
	} else if of, err := metav1.LabelSelectorAsSelector(spread[0].LabelSelector); err != nil || of.Empty() ||
		!of.Matches(labels.Set(pods.Labels)) {
		t.Errorf("those are counted that have %s: %v", of, err)
	}
	keys := map[string]bool{}
	for _, one := range pods.Spec.Tolerations {
		keys[one.Key] = true
		if one.Key != "infra" && (one.TolerationSeconds == nil || *one.TolerationSeconds > 60) {
			t.Errorf("a Pod stays on a lost node: %+v", one)
		}
	}
	if !keys[corev1.TaintNodeNotReady] || !keys[corev1.TaintNodeUnreachable] || !keys["infra"] {
		t.Errorf("it tolerates %v", keys)
	}
}

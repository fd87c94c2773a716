package chart

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/layout"
	"cnmsql.co/internal/resources"
)

// policies are the samples of docs/security.md, by their names.
func policies(t *testing.T) map[string]networkingv1.NetworkPolicy {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]networkingv1.NetworkPolicy{}
	for block := range strings.SplitSeq(string(text), "```yaml\n") {
		block, _, _ = strings.Cut(block, "```")
		for part := range strings.SplitSeq(block, "\n---\n") {
			var is networkingv1.NetworkPolicy
			if !strings.Contains(part, "kind: NetworkPolicy") {
				continue
			}
			if err := yaml.UnmarshalStrict([]byte(part), &is); err != nil {
				t.Fatal(err)
			}
			all[is.Name] = is
		}
	}
	return all
}

// portsFrom are the ports that a policy opens to Pods with these labels of that namespace.
func portsFrom(t *testing.T, of networkingv1.NetworkPolicy, namespace string, pod map[string]string) (ports []int32) {
	t.Helper()
	for _, rule := range of.Spec.Ingress {
		lets := slices.ContainsFunc(rule.From, func(peer networkingv1.NetworkPolicyPeer) bool {
			where := labels.Set{"kubernetes.io/metadata.name": namespace}
			if peer.NamespaceSelector == nil && namespace != of.Namespace {
				return false
			}
			return (peer.NamespaceSelector == nil || selects(t, peer.NamespaceSelector, where)) &&
				(peer.PodSelector == nil || selects(t, peer.PodSelector, pod))
		})
		for _, port := range rule.Ports {
			if lets && !slices.Contains(ports, port.Port.IntVal) {
				ports = append(ports, port.Port.IntVal)
			}
		}
	}
	slices.Sort(ports)
	return ports
}

func selects(t *testing.T, by *metav1.LabelSelector, these labels.Set) bool {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(by)
	if err != nil {
		t.Fatal(err)
	}
	return selector.Matches(these)
}

// TestTheSampleOfANetworkPolicyLetsInWhoHasToComeIn holds its labels and ports to those that the Pods have.
func TestTheSampleOfANetworkPolicyLetsInWhoHasToComeIn(t *testing.T) {
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "shop"}}
	b := &v1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Name: "nightly", Namespace: "shop"}}
	instance := resources.Pod(c, "db-1", resources.PodOptions{OperatorImage: "cnmsql", DefaultImage: "mysql"}).Labels
	job := resources.BackupJob(c, b, "cnmsql").Spec.Template.Labels
	manifests, err := os.ReadFile(filepath.Join(root, "dist", "install.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var deployed appsv1.Deployment
	if !find(t, string(manifests), "Deployment", &deployed) {
		t.Fatal("dist/install.yaml has no Deployment")
	}
	operator, other := deployed.Spec.Template.Labels, map[string]string{"app": "other"}
	sample := policies(t)
	ofInstances, ofOperator := sample["db-instances"], sample["cnmsql-operator"]
	if !selects(t, &ofInstances.Spec.PodSelector, instance) || !selects(t, &ofOperator.Spec.PodSelector, operator) ||
		selects(t, &ofInstances.Spec.PodSelector, job) {
		t.Error("the samples hold for other Pods than those that they are for")
	}
	for _, x := range []struct {
		who, namespace string
		pod            map[string]string
		to             networkingv1.NetworkPolicy
		want           []int32
	}{
		{"an instance", "shop", instance, ofInstances,
			[]int32{layout.MySQLPort, layout.ControlPort, layout.GroupPort, layout.AdminPort}},
		{"the Job of a Backup", "shop", job, ofInstances, []int32{layout.MySQLPort}},
		{"a client", "shop", map[string]string{"db-client": "true"}, ofInstances, []int32{layout.MySQLPort}},
		{"the operator", deployed.Namespace, operator, ofInstances, []int32{layout.ControlPort}},
		{"Prometheus", "monitoring", other, ofInstances, []int32{layout.MetricsPort}},
		{"another Pod", "shop", other, ofInstances, nil},
		{"a client elsewhere", "other", map[string]string{"db-client": "true"}, ofInstances, nil},
		{"the other operator", deployed.Namespace, operator, ofOperator, []int32{8081}},
		{"Prometheus", "monitoring", other, ofOperator, []int32{8080}},
		{"another Pod", "shop", other, ofOperator, nil},
	} {
		if got := portsFrom(t, x.to, x.namespace, x.pod); !slices.Equal(got, x.want) {
			t.Errorf("%s gets to %v of %s, and has to get to %v", x.who, got, x.to.Name, x.want)
		}
	}
}

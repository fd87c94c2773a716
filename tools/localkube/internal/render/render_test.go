package render

import (
	"encoding/json"
	"strings"
	"testing"

	"cnmsql.co/tools/localkube/internal/layout"
)

var twin = layout.Cluster{Name: "a", Index: 3, Dir: "/d/a", Nodes: 2}

func TestJSONConfigurationsParse(t *testing.T) {
	for name, text := range map[string]string{
		"kubelet": Kubelet(twin, twin.Node(1)), "cni": CNI(twin.Node(1)), "kube-proxy": KubeProxy(twin,
			"/k", "node1", true),
	} {
		if !json.Valid([]byte(text)) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestNodesShareNoPath(t *testing.T) {
	one, two := twin.Node(1), twin.Node(2)
	for name, render := range map[string]func(layout.Node) string{
		"containerd": func(n layout.Node) string { return Containerd(n, "p") },
		"cni":        CNI,
	} {
		for line := range strings.Lines(render(one)) {
			if strings.Contains(line, "/d/a") && strings.Contains(render(two), line) {
				t.Errorf("%s: both nodes have %s", name, line)
			}
		}
	}
}

func TestKubeletLogsApartFromOtherKubelets(t *testing.T) {
	if !strings.Contains(Kubelet(twin, twin.Node(1)), `"podLogsDir": "/d/a/nodes/node1/pod-logs"`) {
		t.Error("kubelets would remove each other's logs")
	}
}

func TestDNSAnswersAtTheGateway(t *testing.T) {
	slice, _ := json.Marshal(dnsEndpoints(twin).Body)
	if ip := twin.Gateway().IP.String(); !strings.Contains(string(slice), ip) ||
		!strings.Contains(Corefile(twin), "bind "+ip) {
		t.Errorf("%s, %s", slice, Corefile(twin))
	}
}

func TestObjectsNameThemselvesAsTheirPathDoes(t *testing.T) {
	for _, o := range Objects(twin) {
		name := o.Body["metadata"].(map[string]any)["name"].(string)
		if !strings.HasSuffix(o.Path, "/"+name) {
			t.Errorf("%s holds %s", o.Path, name)
		}
	}
}

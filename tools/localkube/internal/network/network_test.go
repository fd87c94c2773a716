package network

import (
	"slices"
	"strings"
	"testing"

	"cnmsql.co/tools/localkube/internal/layout"
)

func TestRouteTargets(t *testing.T) {
	for line, want := range map[string]string{
		"10.128.0.0/24 dev lk0-br proto kernel":   "10.128.0.0/24",
		"local 10.128.0.1 dev lk0-br table local": "10.128.0.1/32",
		"broadcast 10.128.0.255 dev lk0-br":       "10.128.0.255/32",
		"blackhole 10.130.0.0/16":                 "10.130.0.0/16",
	} {
		if got, ok := routeTarget(line); !ok || got.String() != want {
			t.Errorf("%s: got %s, %v", line, got, ok)
		}
	}
	if got, ok := routeTarget("default via 192.0.2.1 dev eth0"); ok {
		t.Errorf("the default route leads to %s", got)
	}
}

func TestNodesHaveRoutesToOthersOnly(t *testing.T) {
	c := layout.Cluster{Name: "a", Nodes: 3}
	setup := strings.Join(machineSetup(c, c.Node(2).Machine), "\n")
	if strings.Contains(setup, "route replace "+c.Node(2).PodCIDR.String()) {
		t.Errorf("its own Pods are sent away:\n%s", setup)
	}
	for _, other := range []int{1, 3} {
		if !strings.Contains(setup, c.Node(other).PodCIDR.String()+" via "+c.Node(other).IP.String()) {
			t.Errorf("no route to node%d:\n%s", other, setup)
		}
	}
}

func TestPartitionFromNodesSparesControlPlaneAndGateway(t *testing.T) {
	c := layout.Cluster{Name: "a", Nodes: 3}
	got := otherNodes(c, c.Node(1))
	for _, spared := range []string{c.ControlPlane().IP.String(), c.Gateway().IP.String(), c.Node(1).IP.String()} {
		if slices.Contains(got, spared) {
			t.Errorf("%s is cut off", spared)
		}
	}
	if len(got) != 4 {
		t.Errorf("targets %q", got)
	}
}

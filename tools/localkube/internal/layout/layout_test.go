package layout

import (
	"net/netip"
	"strings"
	"testing"
)

func allClusters() []Cluster {
	clusters := make([]Cluster, MaxClusters)
	for i := range clusters {
		clusters[i] = Cluster{Name: "c", Index: i, Dir: "/var/lib/localkube/c", Nodes: MaxNodes}
	}
	return clusters
}

func TestNetworksOfAllClustersAreApart(t *testing.T) {
	var taken []netip.Prefix
	for _, c := range allClusters() {
		for _, p := range []netip.Prefix{c.MachineNet(), c.PodNet(), c.ServiceNet()} {
			for _, other := range taken {
				if p.Overlaps(other) {
					t.Fatalf("cluster %d: %s overlaps %s", c.Index, p, other)
				}
			}
			taken = append(taken, p)
		}
	}
}

func TestNodesLieInTheirNetworksAndApart(t *testing.T) {
	c := allClusters()[MaxClusters-1]
	seen := map[string]bool{}
	for _, n := range c.AllNodes() {
		if !c.PodNet().Contains(n.PodCIDR.Addr()) || n.PodCIDR.Bits() <= c.PodNet().Bits() {
			t.Errorf("%s: Pods %s outside of %s", n.Name, n.PodCIDR, c.PodNet())
		}
		if !c.MachineNet().Contains(n.IP) {
			t.Errorf("%s: address %s outside of %s", n.Name, n.IP, c.MachineNet())
		}
	}
	for _, m := range c.Machines() {
		for _, unique := range []string{m.IP.String(), m.Link, m.Netns, m.MAC(), m.Cgroup} {
			if seen[unique] {
				t.Errorf("%s: %s is used twice", m.Name, unique)
			}
			seen[unique] = true
		}
	}
}

func TestServiceAddressesLieInServiceNet(t *testing.T) {
	for _, c := range allClusters() {
		if !c.ServiceNet().Contains(c.DNSIP()) || !c.ServiceNet().Contains(c.KubernetesIP()) {
			t.Fatalf("cluster %d: %s, %s outside of %s", c.Index, c.DNSIP(), c.KubernetesIP(), c.ServiceNet())
		}
	}
}

func TestKernelLimitsAreKept(t *testing.T) {
	c := Cluster{Name: strings.Repeat("n", 20), Index: MaxClusters - 1, Nodes: MaxNodes}
	if err := CheckName(c.Name); err != nil {
		t.Fatal(err)
	}
	for _, m := range c.Machines() {
		if len(m.Link) > 15 {
			t.Errorf("link %s is longer than 15", m.Link)
		}
	}
	if socket := c.Node(MaxNodes).Socket(); len(socket) > 107 {
		t.Errorf("socket %s is longer than 107", socket)
	}
}

func TestNamesThatWouldHarmAreRefused(t *testing.T) {
	for _, name := range []string{"", "a/b", "..", "Upper", "-a", "a-", "1a", strings.Repeat("a", 21), "a b"} {
		if CheckName(name) == nil {
			t.Errorf("%q is allowed", name)
		}
	}
}

func TestFindNodeTakesNameOrNumber(t *testing.T) {
	c := Cluster{Name: "c", Nodes: 3}
	for _, name := range []string{"node2", "2"} {
		if n, err := c.FindNode(name); err != nil || n.Number != 2 {
			t.Errorf("%q: %v, %v", name, n.Name, err)
		}
	}
	for _, name := range []string{"node0", "node4", "cp", ""} {
		if _, err := c.FindNode(name); err == nil {
			t.Errorf("%q is a node", name)
		}
	}
}

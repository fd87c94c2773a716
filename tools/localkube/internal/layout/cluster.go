package layout

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"regexp"
)

const (
	// MaxClusters is bounded by the addresses: two /16 networks each, from 10.128.
	MaxClusters = 32
	// MaxNodes leaves every node its own /24 of Pods in the upper half of a /16.
	MaxNodes = 99

	runRoot       = "/run/localkube"
	cgroupRoot    = "/localkube"
	firstNetwork  = 128
	firstNodeHost = 10
)

// Cluster is one local Kubernetes.
type Cluster struct {
	Name  string
	Index int    // no two clusters of a machine share it
	Dir   string // everything of it that survives a reboot
	Nodes int
}

var nameForm = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$`)

// CheckName tells why a name cannot be used; names become directories, network
// namespaces and cgroups.
func CheckName(name string) error {
	if !nameForm.MatchString(name) {
		return fmt.Errorf("cluster name %q: use at most 20 of a-z, 0-9 and -, beginning with a letter", name)
	}
	return nil
}

// MachineNet is the network of the bridge: host, control plane, gateway, nodes.
func (c Cluster) MachineNet() netip.Prefix { return netip.PrefixFrom(c.address(0, 0, 0), 24) }

// PodNet holds the Pods of all nodes. It does not overlap MachineNet, or
// kube-proxy would take the host for a Pod and not masquerade its connections.
func (c Cluster) PodNet() netip.Prefix { return netip.PrefixFrom(c.address(0, 128, 0), 17) }

// ServiceNet holds the cluster IPs.
func (c Cluster) ServiceNet() netip.Prefix { return netip.PrefixFrom(c.address(1, 0, 0), 16) }

func (c Cluster) address(network, third, last int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(firstNetwork + 2*c.Index + network), byte(third), byte(last)})
}

// HostIP is the host's own address on the bridge.
func (c Cluster) HostIP() netip.Addr { return c.address(0, 0, 1) }

// HostMAC is the bridge's. Left to itself a bridge takes one of its ports', and
// another when that port goes.
func (c Cluster) HostMAC() string { return macOf(c.HostIP()) }

// KubernetesIP is the cluster IP of the Service `kubernetes`.
func (c Cluster) KubernetesIP() netip.Addr { return c.address(1, 0, 1) }

// DNSIP is the cluster IP of the Service `kube-dns`.
func (c Cluster) DNSIP() netip.Addr { return c.address(1, 0, 10) }

// APIServerURL is where everybody, also the host, reaches the API server.
func (c Cluster) APIServerURL() string {
	return fmt.Sprintf("https://%s:6443", c.ControlPlane().IP)
}

// Bridge joins the machines of the cluster.
func (c Cluster) Bridge() string { return fmt.Sprintf("lk%d-br", c.Index) }

// RunDir is on a tmpfs, so that a reboot forgets what a power loss would.
func (c Cluster) RunDir() string { return filepath.Join(runRoot, c.Name) }

// CgroupPath is relative to the root of every cgroup hierarchy.
func (c Cluster) CgroupPath() string { return filepath.Join(cgroupRoot, c.Name) }

// Path is a place in the cluster's directory.
func (c Cluster) Path(parts ...string) string {
	return filepath.Join(append([]string{c.Dir}, parts...)...)
}

// Kubeconfig is the administrator's.
func (c Cluster) Kubeconfig() string { return c.Path("kubeconfig") }

// LogFile is the log of one component of one machine.
func (c Cluster) LogFile(component string) string { return c.Path("logs", component+".log") }

// VolumeRoot holds <node>/<volume> of the storage class.
func (c Cluster) VolumeRoot() string { return c.Path("volumes") }

package layout

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
)

// Machine is a network namespace that plays a computer of the cluster.
type Machine struct {
	Name string
	IP   netip.Addr
	// Link is the end of its cable in the root namespace; the other is eth0.
	Link   string
	Netns  string
	Cgroup string // of all its processes
}

// ControlPlane runs etcd, the API server and the controllers.
func (c Cluster) ControlPlane() Machine { return c.machine("cp", c.address(0, 0, 2), "cp") }

// Gateway is a neutral machine: it runs DNS, and leads the host to Services and
// Pods. It is apart from the control plane so that cutting a node from the API
// server leaves the node's clients connected, as in a real network.
func (c Cluster) Gateway() Machine { return c.machine("gw", c.address(0, 0, 3), "gw") }

// Machines are all of them, nodes last.
func (c Cluster) Machines() []Machine {
	machines := []Machine{c.ControlPlane(), c.Gateway()}
	for _, n := range c.AllNodes() {
		machines = append(machines, n.Machine)
	}
	return machines
}

func (c Cluster) machine(name string, ip netip.Addr, link string) Machine {
	return Machine{
		Name: name, IP: ip,
		Link:   fmt.Sprintf("lk%d-%s", c.Index, link),
		Netns:  "localkube-" + c.Name + "-" + name,
		Cgroup: filepath.Join(c.CgroupPath(), name),
	}
}

// MAC follows from the address, so that a machine which is powered on again, or a
// bridge that lost a port, is still known by its neighbours' ARP caches.
func (m Machine) MAC() string { return macOf(m.IP) }

func macOf(ip netip.Addr) string {
	b := ip.As4()
	return fmt.Sprintf("02:6b:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3])
}

// NetnsPath is where `ip netns` pins the namespace.
func (m Machine) NetnsPath() string { return filepath.Join("/run/netns", m.Netns) }

// DaemonCgroup holds the machine's own processes. It is a leaf beside the Pods'
// groups, because cgroup v2 forbids processes in inner groups.
func (m Machine) DaemonCgroup() string { return filepath.Join(m.Cgroup, "daemons") }

// Node is a Kubernetes node.
type Node struct {
	Machine
	Number  int // from 1
	PodCIDR netip.Prefix
	dir     string
	runDir  string
}

// Node is the node of a number from 1.
func (c Cluster) Node(number int) Node {
	name := fmt.Sprintf("node%d", number)
	m := c.machine(name, c.address(0, 0, firstNodeHost+number), fmt.Sprintf("n%d", number))
	return Node{
		Machine: m, Number: number,
		PodCIDR: netip.PrefixFrom(c.address(0, 128+number, 0), 24),
		dir:     c.Path("nodes", name),
		runDir:  filepath.Join(c.RunDir(), name),
	}
}

// AllNodes are the nodes in order.
func (c Cluster) AllNodes() []Node {
	nodes := make([]Node, c.Nodes)
	for i := range nodes {
		nodes[i] = c.Node(i + 1)
	}
	return nodes
}

// FindNode takes a node's name, or its number alone.
func (c Cluster) FindNode(name string) (Node, error) {
	number, err := strconv.Atoi(strings.TrimPrefix(name, "node"))
	if err != nil || number < 1 || number > c.Nodes {
		return Node{}, fmt.Errorf("cluster %q has no node %q: it has node1 to node%d", c.Name, name, c.Nodes)
	}
	return c.Node(number), nil
}

// Path is a place in the node's directory, which survives a power loss.
func (n Node) Path(parts ...string) string {
	return filepath.Join(append([]string{n.dir}, parts...)...)
}

// RunDir does not survive a power loss.
func (n Node) RunDir() string { return n.runDir }

// ContainerdState holds mounts and namespaces of running Pods.
func (n Node) ContainerdState() string { return filepath.Join(n.runDir, "containerd") }

// Socket is containerd's. Its path is short: a Unix socket's may have 107 bytes.
func (n Node) Socket() string { return filepath.Join(n.runDir, "containerd.sock") }

// PodNetworkName is the CNI's name of the Pods' network.
func (n Node) PodNetworkName() string { return n.Link }

// Sandboxes holds a directory for each Pod the runtime has known, named by the
// Pod's sandbox.
func (n Node) Sandboxes() string {
	return n.Path("containerd", "io.containerd.grpc.v1.cri", "sandboxes")
}

// PodLogs holds the logs of containers.
func (n Node) PodLogs() string { return n.Path("pod-logs") }

// IPAMDir holds the addresses handed out to Pods; Pods do not survive a power
// loss, so their addresses must not either.
func (n Node) IPAMDir() string { return filepath.Join(n.runDir, "ipam") }

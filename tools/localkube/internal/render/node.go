package render

import (
	"encoding/json"
	"fmt"

	"cnmsql.co/tools/localkube/internal/layout"
)

// Containerd configures the node's own containerd, state and socket apart from
// any other on the machine.
func Containerd(n layout.Node, pauseImage string) string {
	return fmt.Sprintf(`version = 2
root = %q
state = %q

[grpc]
  address = %q

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  # In a container or sandbox of the machine, lowering oom_score_adj is forbidden
  # and runc would die of it.
  restrict_oom_score_adj = true
  # Pods' network namespaces belong to the node's state, not to /run/netns.
  netns_mounts_under_state_dir = true

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = %q

  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
`, n.Path("containerd"), n.ContainerdState(), n.Socket(), pauseImage, n.Path("cni"))
}

// CNI joins Pods to a bridge in the node's network namespace.
func CNI(n layout.Node) string {
	bridge := map[string]any{
		"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
		"ipam": map[string]any{
			"type": "host-local", "dataDir": n.IPAMDir(),
			"ranges": [][]map[string]string{{{"subnet": n.PodCIDR.String()}}},
			"routes": []map[string]string{{"dst": "0.0.0.0/0"}},
		},
	}
	ports := map[string]any{"type": "portmap", "capabilities": map[string]bool{"portMappings": true}}
	return toJSON(map[string]any{"cniVersion": "0.4.0", "name": n.PodNetworkName(), "plugins": []any{bridge, ports}})
}

// Kubelet configures the node's kubelet.
func Kubelet(c layout.Cluster, n layout.Node) string {
	return toJSON(map[string]any{
		"apiVersion":               "kubelet.config.k8s.io/v1beta1",
		"kind":                     "KubeletConfiguration",
		"cgroupDriver":             "cgroupfs",
		"cgroupRoot":               n.Cgroup,
		"failCgroupV1":             false,
		"failSwapOn":               false,
		"containerRuntimeEndpoint": "unix://" + n.Socket(),
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"x509":      map[string]any{"clientCAFile": c.Path("pki", "ca.crt")},
			"webhook":   map[string]any{"enabled": true},
		},
		"authorization":          map[string]any{"mode": "Webhook"},
		"tlsCertFile":            c.Path("pki", n.Name+".crt"),
		"tlsPrivateKeyFile":      c.Path("pki", n.Name+".key"),
		"clusterDNS":             []string{c.DNSIP().String()},
		"clusterDomain":          "cluster.local",
		"resolvConf":             c.Path("resolv.conf"),
		"enforceNodeAllocatable": []string{},
		"evictionHard": map[string]string{"memory.available": "100Mi", "nodefs.available": "1%",
			"imagefs.available": "1%", "nodefs.inodesFree": "1%"},
		"imageGCHighThresholdPercent": 100, // there is no registry to pull a removed image from again
		"nodeStatusUpdateFrequency":   "4s",
		"syncFrequency":               "10s",
		// In a shared /var/log/pods every kubelet removes the logs of the others' Pods.
		"podLogsDir": n.PodLogs(),
		"maxPods":    110,
	})
}

// ResolvConf sends every look-up to the cluster's DNS, also those of Pods with
// dnsPolicy Default: the machine's own name server is out of their reach.
func ResolvConf(c layout.Cluster) string {
	return fmt.Sprintf("nameserver %s\nsearch svc.cluster.local cluster.local\noptions ndots:5\n", c.DNSIP())
}

// KubeProxy configures the kube-proxy that stands for a node.
func KubeProxy(c layout.Cluster, kubeconfig, node string, bridgeFiltered bool) string {
	return toJSON(map[string]any{
		"apiVersion":       "kubeproxy.config.k8s.io/v1alpha1",
		"kind":             "KubeProxyConfiguration",
		"mode":             "iptables",
		"clientConnection": map[string]any{"kubeconfig": kubeconfig},
		"clusterCIDR":      c.PodNet().String(),
		"hostnameOverride": node,
		// Replies between two Pods of one bridge skip the node's NAT unless bridged
		// frames pass through iptables; masquerading brings them back.
		"iptables":  map[string]any{"masqueradeAll": !bridgeFiltered},
		"conntrack": map[string]any{"maxPerCore": 0},
	})
}

func toJSON(v any) string {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(err) // only maps of strings, numbers and lists reach this
	}
	return string(data) + "\n"
}

package cluster

import (
	"cnmsql.co/tools/localkube/internal/layout"
	"cnmsql.co/tools/localkube/internal/process"
	"cnmsql.co/tools/localkube/internal/render"
)

// component is a program of the built Kubernetes on one machine.
func (c *Cluster) component(m layout.Machine, name string, args ...string) process.Process {
	return c.daemon(m, name, append([]string{c.build.Component(name)}, args...)...)
}

func (c *Cluster) daemon(m layout.Machine, name string, argv ...string) process.Process {
	file := m.Name + "-" + name
	return process.Process{
		Name: m.Name + "/" + name, Argv: argv,
		Netns:   m.NetnsPath(),
		Cgroups: c.cgroups.ProcsFiles(m.DaemonCgroup()),
		LogFile: c.LogFile(file),
		PidFile: c.Path("pids", file),
	}
}

func (c *Cluster) etcd() process.Process {
	return c.component(c.ControlPlane(), "etcd", render.Etcd(c.Cluster)...)
}

func (c *Cluster) apiServer() process.Process {
	return c.component(c.ControlPlane(), "kube-apiserver", render.APIServer(c.Cluster)...)
}

// controllers need the API server to be ready before they start, or they end.
func (c *Cluster) controllers() []process.Process {
	cp, gw := c.ControlPlane(), c.Gateway()
	return []process.Process{
		c.component(cp, "kube-controller-manager", render.ControllerManager(c.Cluster)...),
		c.component(cp, "kube-scheduler", "--kubeconfig="+c.kubeconfigOf("scheduler"), "--leader-elect=false"),
		c.component(cp, "localkube-provisioner", "-kubeconfig="+c.kubeconfigOf("provisioner"),
			"-root="+c.VolumeRoot(), "-name="+render.ProvisionerName),
		c.component(gw, "coredns", "-conf", c.Path("Corefile")),
		c.component(gw, "kube-proxy", "--config="+c.Path("gw-kube-proxy.json")),
	}
}

func (c *Cluster) containerd(n layout.Node) process.Process {
	return c.daemon(n.Machine, "containerd", "containerd", "--config", n.Path("containerd.toml"))
}

func (c *Cluster) kubelet(n layout.Node) process.Process {
	return c.component(n.Machine, "kubelet", "--config="+n.Path("kubelet.json"),
		"--kubeconfig="+c.kubeconfigOf(n.Name), "--hostname-override="+n.Name,
		"--node-ip="+n.IP.String(), "--root-dir="+n.Path("kubelet"))
}

func (c *Cluster) kubeProxy(n layout.Node) process.Process {
	return c.component(n.Machine, "kube-proxy", "--config="+n.Path("kube-proxy.json"))
}

func (c *Cluster) nodeProcesses(n layout.Node) []process.Process {
	return []process.Process{c.containerd(n), c.kubelet(n), c.kubeProxy(n)}
}

// processes are all there are, in the order in which they start.
func (c *Cluster) processes() []process.Process {
	all := append([]process.Process{c.etcd(), c.apiServer()}, c.controllers()...)
	for _, n := range c.AllNodes() {
		all = append(all, c.nodeProcesses(n)...)
	}
	return all
}

package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"cnmsql.co/tools/localkube/internal/kubeapi"
	"cnmsql.co/tools/localkube/internal/kubebuild"
	"cnmsql.co/tools/localkube/internal/layout"
	"cnmsql.co/tools/localkube/internal/network"
	"cnmsql.co/tools/localkube/internal/pki"
	"cnmsql.co/tools/localkube/internal/render"
)

func (c *Cluster) kubeconfigOf(user string) string { return c.Path("kubeconfigs", user) }

// subjects are the users of the cluster by the names of their files.
func (c *Cluster) subjects() map[string]pki.Subject {
	all := map[string]pki.Subject{
		"admin":              {User: "admin", Groups: []string{"system:masters"}},
		"controller-manager": {User: "system:kube-controller-manager"},
		"scheduler":          {User: "system:kube-scheduler"},
		"kube-proxy":         {User: "system:kube-proxy"},
		"coredns":            {User: "system:coredns"},
		"provisioner":        {User: "localkube:provisioner"},
	}
	for _, n := range c.AllNodes() {
		all[n.Name] = pki.Subject{User: "system:node:" + n.Name, Groups: []string{"system:nodes"},
			Names: []string{n.Name}, IPs: []netip.Addr{n.IP}}
	}
	return all
}

// writeIdentities makes what is missing of certificates and kubeconfigs.
func (c *Cluster) writeIdentities() error {
	authority, err := pki.Open(c.Path("pki"))
	if err != nil {
		return err
	}
	if err := c.writeServerIdentities(authority); err != nil {
		return err
	}
	if err := os.MkdirAll(c.Path("kubeconfigs"), 0o700); err != nil {
		return err
	}
	for name, subject := range c.subjects() {
		if err := authority.Ensure(name, subject); err != nil {
			return err
		}
		if err := authority.WriteKubeconfig(c.kubeconfigOf(name), c.Name, c.APIServerURL(), name); err != nil {
			return err
		}
	}
	return authority.WriteKubeconfig(c.Kubeconfig(), c.Name, c.APIServerURL(), "admin")
}

func (c *Cluster) writeServerIdentities(authority *pki.Authority) error {
	if err := authority.EnsureSigningKey("service-account"); err != nil {
		return err
	}
	if err := authority.Ensure("front-proxy", pki.Subject{User: "front-proxy"}); err != nil {
		return err
	}
	return authority.Ensure("apiserver", pki.Subject{
		User: "kube-apiserver",
		Names: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc.cluster.local"},
		IPs: []netip.Addr{netip.MustParseAddr("127.0.0.1"), c.ControlPlane().IP, c.KubernetesIP()},
	})
}

// writeConfigs writes the files that are the same at every start.
func (c *Cluster) writeConfigs() error {
	proxy := render.KubeProxy(c.Cluster, c.kubeconfigOf("kube-proxy"), c.Node(1).Name, true)
	files := map[string]string{
		c.Path("resolv.conf"):        render.ResolvConf(c.Cluster),
		c.Path("Corefile"):           render.Corefile(c.Cluster),
		c.Path("gw-kube-proxy.json"): proxy,
	}
	return writeFiles(files)
}

func (c *Cluster) writeNodeConfigs(ctx context.Context, n layout.Node) error {
	filtered := network.BridgeFiltered(ctx, n.Machine)
	return writeFiles(map[string]string{
		n.Path("containerd.toml"):              render.Containerd(n, kubebuild.PauseImage),
		n.Path("cni", "10-localkube.conflist"): render.CNI(n),
		n.Path("kubelet.json"):                 render.Kubelet(c.Cluster, n),
		n.Path("kube-proxy.json"): render.KubeProxy(c.Cluster,
			c.kubeconfigOf("kube-proxy"), n.Name, filtered),
	})
}

// writeFiles leaves a file alone that is as it should be: kube-proxy ends itself
// when its configuration is written, even with the same bytes.
func writeFiles(files map[string]string) error {
	for path, text := range files {
		if old, err := os.ReadFile(path); err == nil && string(old) == text {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// admin is a client with every right.
func (c *Cluster) admin() (*kubeapi.Client, error) {
	client, err := kubeapi.New(c.APIServerURL(), c.Path("pki", "ca.crt"), c.Path("pki", "admin.crt"),
		c.Path("pki", "admin.key"))
	if err != nil {
		return nil, fmt.Errorf("reading the administrator's certificate: %w; `localkube up --name %s` makes it", err,
			c.Name)
	}
	return client, nil
}

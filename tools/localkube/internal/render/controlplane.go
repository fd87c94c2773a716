package render

import (
	"fmt"

	"cnmsql.co/tools/localkube/internal/layout"
)

// Etcd gives up durability against a power loss of the host for speed.
func Etcd(c layout.Cluster) []string {
	return []string{
		"--data-dir=" + c.Path("etcd"),
		"--listen-client-urls=http://127.0.0.1:2379",
		"--advertise-client-urls=http://127.0.0.1:2379",
		"--unsafe-no-fsync",
		"--log-level=warn",
	}
}

// APIServer lets the server reach Services by their endpoints, so that webhooks
// do not hang on a kube-proxy of the control plane.
func APIServer(c layout.Cluster) []string {
	pki := func(file string) string { return c.Path("pki", file) }
	ip := c.ControlPlane().IP.String()
	return []string{
		"--etcd-servers=http://127.0.0.1:2379",
		"--advertise-address=" + ip,
		"--bind-address=0.0.0.0",
		"--secure-port=6443",
		"--tls-cert-file=" + pki("apiserver.crt"),
		"--tls-private-key-file=" + pki("apiserver.key"),
		"--client-ca-file=" + pki("ca.crt"),
		"--requestheader-client-ca-file=" + pki("ca.crt"),
		"--requestheader-allowed-names=front-proxy",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + pki("front-proxy.crt"),
		"--proxy-client-key-file=" + pki("front-proxy.key"),
		"--service-account-key-file=" + pki("service-account.pub"),
		"--service-account-signing-key-file=" + pki("service-account.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-cluster-ip-range=" + c.ServiceNet().String(),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--kubelet-certificate-authority=" + pki("ca.crt"),
		"--kubelet-client-certificate=" + pki("admin.crt"),
		"--kubelet-client-key=" + pki("admin.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--enable-aggregator-routing=true",
		"--allow-privileged=true",
	}
}

// ControllerManager hands out no Pod networks: its order would differ from that
// of the bridges.
func ControllerManager(c layout.Cluster) []string {
	return []string{
		"--kubeconfig=" + c.Path("kubeconfigs", "controller-manager"),
		"--service-account-private-key-file=" + c.Path("pki", "service-account.key"),
		"--root-ca-file=" + c.Path("pki", "ca.crt"),
		"--cluster-signing-cert-file=" + c.Path("pki", "ca.crt"),
		"--cluster-signing-key-file=" + c.Path("pki", "ca.key"),
		"--use-service-account-credentials",
		"--allocate-node-cidrs=false",
		"--leader-elect=false",
	}
}

// Corefile serves cluster.local, cached as kubeadm's does: no answer about the
// cluster is remembered. Any other name does not exist, since there is no way
// out: without that answer clients would take DNS for broken, and try for long.
func Corefile(c layout.Cluster) string {
	ip := c.Gateway().IP
	return fmt.Sprintf(`.:53 {
    bind %[1]s
    errors
    health %[1]s:8080
    ready %[1]s:8181
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        kubeconfig %[2]s
        pods insecure
        ttl 30
    }
    cache 30 {
        disable success cluster.local
        disable denial cluster.local
    }
    loadbalance
    template ANY ANY . {
        rcode NXDOMAIN
    }
}
`, ip, c.Path("kubeconfigs", "coredns"))
}

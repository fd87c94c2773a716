package render

import "cnmsql.co/tools/localkube/internal/layout"

// ProvisionerName is what the storage class calls its provisioner.
const ProvisionerName = "localkube.cnmsql.co/host-path"

// Object is an API object and where it belongs.
type Object struct {
	Path string
	Body map[string]any
}

// Objects are what a cluster is given besides nodes: DNS, storage, and the
// rights of the components that bring them.
func Objects(c layout.Cluster) []Object {
	return []Object{
		storageClass(), dnsService(c), dnsEndpoints(c),
		clusterRole("localkube:coredns", coreDNSRules()), bind("localkube:coredns",
			"localkube:coredns", "system:coredns"),
		bind("localkube:provisioner", "system:persistent-volume-provisioner", "localkube:provisioner"),
	}
}

func storageClass() Object {
	return Object{"/apis/storage.k8s.io/v1/storageclasses/localkube", map[string]any{
		"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
		"metadata": map[string]any{"name": "localkube",
			"annotations": map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		"provisioner": ProvisionerName, "reclaimPolicy": "Delete", "volumeBindingMode": "WaitForFirstConsumer",
	}}
}

// dnsService has no selector: CoreDNS is a process of the gateway, not a Pod.
func dnsService(c layout.Cluster) Object {
	port := func(name, protocol string) map[string]any {
		return map[string]any{"name": name, "protocol": protocol, "port": 53, "targetPort": 53}
	}
	return Object{"/api/v1/namespaces/kube-system/services/kube-dns", map[string]any{
		"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{"name": "kube-dns", "namespace": "kube-system",
			"labels": map[string]string{"k8s-app": "kube-dns"}},
		"spec": map[string]any{"clusterIP": c.DNSIP().String(), "ports": []any{port("dns", "UDP"),
			port("dns-tcp", "TCP")}},
	}}
}

func dnsEndpoints(c layout.Cluster) Object {
	port := func(name, protocol string) map[string]any {
		return map[string]any{"name": name, "protocol": protocol, "port": 53}
	}
	return Object{"/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices/kube-dns", map[string]any{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
		"metadata": map[string]any{"name": "kube-dns", "namespace": "kube-system",
			"labels": map[string]string{"kubernetes.io/service-name": "kube-dns",
				"endpointslice.kubernetes.io/managed-by": "localkube"}},
		"addressType": "IPv4",
		"endpoints": []any{map[string]any{"addresses": []string{c.Gateway().IP.String()},
			"conditions": map[string]bool{"ready": true}}},
		"ports": []any{port("dns", "UDP"), port("dns-tcp", "TCP")},
	}}
}

func coreDNSRules() []any {
	rule := func(group string, resources ...string) map[string]any {
		return map[string]any{"apiGroups": []string{group}, "resources": resources,
			"verbs": []string{"get", "list", "watch"}}
	}
	return []any{rule("", "services", "pods", "namespaces", "endpoints"), rule("discovery.k8s.io", "endpointslices")}
}

func clusterRole(name string, rules []any) Object {
	return Object{"/apis/rbac.authorization.k8s.io/v1/clusterroles/" + name, map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
		"metadata": map[string]any{"name": name}, "rules": rules,
	}}
}

func bind(name, role, user string) Object {
	const group = "rbac.authorization.k8s.io"
	return Object{"/apis/" + group + "/v1/clusterrolebindings/" + name, map[string]any{
		"apiVersion": group + "/v1", "kind": "ClusterRoleBinding",
		"metadata": map[string]any{"name": name},
		"roleRef":  map[string]any{"apiGroup": group, "kind": "ClusterRole", "name": role},
		"subjects": []any{map[string]any{"apiGroup": group, "kind": "User", "name": user}},
	}}
}

package operator

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/internal/resources"
)

// renumber gives the ports of a Service their numbers back, where somebody has changed one. An apply
// cannot: it finds a port by its number, would put ours beside the changed one, and the API server
// refuses two ports of one name. The object that was found is then what it has become.
func (a *applier) renumber(ctx context.Context, found, obj client.Object) error {
	is, isService := found.(*corev1.Service)
	if !isService {
		return nil
	}
	wanted := obj.(*corev1.Service).Spec.Ports
	if !slices.ContainsFunc(is.Spec.Ports, func(p corev1.ServicePort) bool {
		n := portNamed(wanted, p)
		return n >= 0 && !isSamePort(wanted[n], p)
	}) {
		return nil
	}
	before := is.DeepCopy()
	before.UID = "" // so that the patch has it: another Service of that name is refused
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	is.Spec.Ports = withPorts(is.Spec.Ports, wanted)
	if err := a.client.Patch(ctx, is, patch, client.FieldOwner(resources.FieldManager)); err != nil {
		return fmt.Errorf("give the ports of the Service %s their numbers back: %w", is.Name, err)
	}
	return nil
}

// withPorts are the wanted ports, and those of others that are not in their way. A port of the node
// stays with the name it has.
func withPorts(is, wanted []corev1.ServicePort) []corev1.ServicePort {
	out := slices.Clone(wanted)
	for _, p := range is {
		if n := portNamed(wanted, p); n >= 0 {
			out[n].NodePort = p.NodePort
		} else if !slices.ContainsFunc(wanted, func(w corev1.ServicePort) bool { return isSamePort(w, p) }) {
			out = append(out, p)
		}
	}
	return out
}

// portNamed is where the port of that name is; -1 when there is none.
func portNamed(ports []corev1.ServicePort, like corev1.ServicePort) int {
	return slices.IndexFunc(ports, func(p corev1.ServicePort) bool { return p.Name == like.Name })
}

func isSamePort(a, b corev1.ServicePort) bool { return a.Port == b.Port && a.Protocol == b.Protocol }

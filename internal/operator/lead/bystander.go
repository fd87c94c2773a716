package lead

import (
	"context"
	"net"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"cnmsql.co/internal/layout"
	"cnmsql.co/internal/observation"
	"cnmsql.co/internal/resources"
)

// bystanders tell a standby that does not reach the leader which of the two is cut off: the
// managers of instances on other nodes than theirs.
type bystanders struct {
	pods func(namespace string) corev1client.PodInterface
	// namespace is the operators', me this one's Pod.
	namespace, me string
	dial          func(ctx context.Context, address string) error
	log           logr.Logger
}

const (
	// askedPods is how many Pods are read at most, askedNodes how many nodes are tried.
	askedPods  = 100
	askedNodes = 5
)

// reached reports whether this process reaches anybody but the leader: then it is the leader
// that is out of reach. Where there is nobody to ask, nothing speaks against that. What
// cannot be found out is no.
func (b *bystanders) reached(ctx context.Context, leader string) bool {
	addresses, err := b.elsewhere(ctx, leader)
	if err != nil || len(addresses) == 0 {
		return err == nil
	}
	results := make(chan error, len(addresses))
	for _, a := range addresses {
		go func() { results <- b.dial(ctx, a) }()
	}
	for range addresses {
		if <-results == nil {
			return true
		}
	}
	b.log.Info("this operator does not take the lead early: its own node may be cut off, "+
		"because it reaches neither the leader nor any instance on another node", "leader", leader, "tried", addresses)
	return false
}

// elsewhere are the addresses of managers, of one on each node that is neither the leader's
// nor this process's.
func (b *bystanders) elsewhere(ctx context.Context, leader string) ([]string, error) {
	taken := map[string]bool{"": true}
	host, _, _ := strings.Cut(leader, "_")
	for _, name := range []string{b.me, host} {
		pod, err := b.pods(b.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		taken[pod.Spec.NodeName] = true
	}
	list, err := b.pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		LabelSelector: resources.InstancesSelector, FieldSelector: "status.phase=Running", Limit: askedPods})
	if err != nil {
		return nil, err
	}
	var addresses []string
	for i := range list.Items {
		pod := &list.Items[i]
		if taken[pod.Spec.NodeName] || pod.Status.PodIP == "" || !observation.IsReady(pod) ||
			len(addresses) == askedNodes {
			continue
		}
		taken[pod.Spec.NodeName] = true
		addresses = append(addresses, net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(layout.ControlPort)))
	}
	return addresses, nil
}

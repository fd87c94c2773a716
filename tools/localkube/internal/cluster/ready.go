package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"cnmsql.co/tools/localkube/internal/layout"
)

type nodeObject struct {
	Spec   struct{ PodCIDR string }
	Status struct {
		Conditions []condition
		NodeInfo   struct{ KubeletVersion string }
	}
}

type condition struct {
	Type, Status, Message string
	LastHeartbeatTime     time.Time
}

func (n nodeObject) ready() condition {
	for _, c := range n.Status.Conditions {
		if c.Type == "Ready" {
			return c
		}
	}
	return condition{Status: "Unknown", Message: "the kubelet has not reported"}
}

// waitNode waits until the node is ready and its kube-proxy has written its
// rules. A kubelet that was started since must have reported since: the object
// still tells how the node was before it died.
func (c *Cluster) waitNode(ctx context.Context, n layout.Node, since time.Time) error {
	api, err := c.admin()
	if err != nil {
		return err
	}
	restarted := startedSince(c.kubelet(n).PidFile, since)
	var object nodeObject
	err = waitFor(ctx, n.Name, 90*time.Second, c.nodeProcesses(n), func(ctx context.Context) error {
		object = nodeObject{}
		if err := api.GetInto(ctx, "/api/v1/nodes/"+n.Name, &object); err != nil {
			return err
		}
		ready := object.ready()
		if ready.Status != "True" {
			return fmt.Errorf("node is not ready: %s", ready.Message)
		}
		if restarted && ready.LastHeartbeatTime.Before(since.Truncate(time.Second)) {
			return errors.New("the kubelet has not reported since it was started")
		}
		return nil
	})
	if err != nil {
		return err
	}
	if object.Spec.PodCIDR == "" {
		cidr := n.PodCIDR.String()
		patch := map[string]any{"spec": map[string]any{"podCIDR": cidr, "podCIDRs": []string{cidr}}}
		if err := api.Merge(ctx, "/api/v1/nodes/"+n.Name, patch); err != nil {
			return fmt.Errorf("telling %s its Pod network: %w", n.Name, err)
		}
	}
	proxy := c.kubeProxy(n)
	return waitFor(ctx, proxy.Name, time.Minute, c.nodeProcesses(n)[2:], httpOK(fmt.Sprintf("http://%s:10256/healthz", n.IP)))
}

// joinErrors puts several failures below each other.
func joinErrors(all []error) error {
	var texts []string
	for _, err := range all {
		if err != nil {
			texts = append(texts, err.Error())
		}
	}
	if len(texts) == 0 {
		return nil
	}
	return errors.New(strings.Join(texts, "\n"))
}

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"cnmsql.co/tools/localkube/internal/layout"
	"cnmsql.co/tools/localkube/internal/process"
)

// waitReady waits for what the first Pod will need: nodes, the account it runs
// as, DNS, and Services from nodes and host.
func (c *Cluster) waitReady(ctx context.Context, since time.Time) error {
	for _, n := range c.AllNodes() {
		if err := c.waitNode(ctx, n, since); err != nil {
			return err
		}
	}
	api, err := c.admin()
	if err != nil {
		return err
	}
	controllers := c.controllers()
	err = waitFor(ctx, "the default service account", time.Minute, controllers[:1], func(ctx context.Context) error {
		_, err := api.Get(ctx, "/api/v1/namespaces/default/serviceaccounts/default")
		return err
	})
	if err != nil {
		return err
	}
	ready := fmt.Sprintf("http://%s:8181/ready", c.Gateway().IP)
	if err := waitFor(ctx, "CoreDNS", time.Minute, controllers[3:4], httpOK(ready)); err != nil {
		return err
	}
	vip := net.JoinHostPort(c.KubernetesIP().String(), "443")
	return waitFor(ctx, "Services on the host", time.Minute, controllers[4:], func(ctx context.Context) error {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", vip)
		if err == nil {
			conn.Close()
		}
		return err
	})
}

func httpOK(url string) func(context.Context) error {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{}}
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", url, resp.Status)
		}
		return nil
	}
}

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
// still tells how the node was before it died. One that ended since is started again.
func (c *Cluster) waitNode(ctx context.Context, n layout.Node, since time.Time) error {
	api, err := c.admin()
	if err != nil {
		return err
	}
	restarted := startedSince(c.kubelet(n).PidFile, since)
	var object nodeObject
	revive := c.reviving(n)
	needs := []process.Process{c.containerd(n), c.kubeProxy(n)}
	err = waitFor(ctx, n.Name, 3*time.Minute, needs, func(ctx context.Context) error {
		if err := revive(); err != nil {
			return err
		}
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
	return waitFor(ctx, proxy.Name, time.Minute, []process.Process{proxy},
		httpOK(fmt.Sprintf("http://%s:10256/healthz", n.IP)))
}

// kubeletStarts is how often a node's kubelet is started again while it is waited for.
const kubeletStarts = 5

// reviving returns what starts the node's kubelet if it has ended, as an init system would:
// all kubelets remove and make the same socket in /var/lib/kubelet/device-plugins, and of two
// that do so at the same moment one ends ("address already in use").
func (c *Cluster) reviving(n layout.Node) func() error {
	kubelet, left := c.kubelet(n), kubeletStarts
	return func() error {
		if _, runs := kubelet.Running(); runs {
			return nil
		}
		if left == 0 {
			return fmt.Errorf("%s %w; %s", kubelet.Name, errEnds, logEnd(kubelet))
		}
		left--
		return kubelet.Ensure()
	}
}

package cluster

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"cnmsql.co/tools/localkube/internal/layout"
	"cnmsql.co/tools/localkube/internal/network"
)

// Status prints what runs and what does not, and tells whether all is well.
func (c *Cluster) Status(ctx context.Context) bool {
	fmt.Fprintf(c.out, "cluster     %s (%d nodes, network %s, Services %s)\n", c.Name, c.Nodes,
		c.MachineNet(), c.ServiceNet())
	fmt.Fprintf(c.out, "directory   %s\nkubeconfig  %s\n\n", c.Dir, c.Kubeconfig())
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	defer w.Flush()
	healthy := c.processStatus(w)
	fmt.Fprintln(w)
	for _, n := range c.AllNodes() {
		healthy = c.nodeStatus(ctx, w, n) && healthy
	}
	return healthy
}

func (c *Cluster) processStatus(w io.Writer) bool {
	healthy := true
	for _, p := range c.processes() {
		state := "not running"
		pid, ok := p.Running()
		if ok {
			state = fmt.Sprintf("process %d", pid)
		}
		healthy = healthy && ok
		fmt.Fprintf(w, "%s\t%s\t%s\n", p.Name, state, p.LogFile)
	}
	return healthy
}

func (c *Cluster) nodeStatus(ctx context.Context, w io.Writer, n layout.Node) bool {
	state, ready := c.readiness(ctx, n)
	faults := network.Faults(ctx, n)
	if !network.NetnsExists(n.Machine) {
		faults = "powered off"
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", n.Name, n.IP, state, faults)
	return ready && faults == ""
}

func (c *Cluster) readiness(ctx context.Context, n layout.Node) (string, bool) {
	api, err := c.admin()
	if err != nil {
		return "not made", false
	}
	var object nodeObject
	if err := api.GetInto(ctx, "/api/v1/nodes/"+n.Name, &object); err != nil {
		return "unknown: " + err.Error(), false
	}
	version := object.Status.NodeInfo.KubeletVersion
	if ready := object.ready(); ready.Status != "True" {
		return "not ready, " + version, false
	}
	return "ready, " + version, true
}

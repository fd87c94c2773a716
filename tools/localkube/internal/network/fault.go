package network

import (
	"context"
	"fmt"
	"os"
	"strings"

	"cnmsql.co/tools/localkube/internal/command"
	"cnmsql.co/tools/localkube/internal/layout"
)

// chain holds the rules of a fault, in the namespace of the node. It comes first
// in every built-in chain, before established connections are let through.
const chain = "LOCALKUBE-FAULT"

// From is what a node is cut off from.
type From string

const (
	FromAll   From = "all"   // the cable is out
	FromAPI   From = "api"   // the control plane, in both directions
	FromNodes From = "nodes" // the other nodes and their Pods, in both directions
)

// Direction is which way packets are dropped.
type Direction string

const (
	BothWays Direction = "both"
	Incoming Direction = "in"  // the node hears nothing, and is heard
	Outgoing Direction = "out" // the node is not heard, and hears
)

// Partition cuts a node and its Pods off. Faults add up until Heal.
func Partition(ctx context.Context, c layout.Cluster, n layout.Node, from From, way Direction) error {
	if !NetnsExists(n.Machine) {
		return fmt.Errorf(
			"%s is not there to be cut off: it is powered off (`localkube poweron %s`) or the cluster is not up",
			n.Name, n.Name)
	}
	switch {
	case way != BothWays && way != Incoming && way != Outgoing:
		return fmt.Errorf("partition in the direction %q: use in, out or both", way)
	case from == FromAll && way != BothWays:
		return fmt.Errorf("a cable is out both ways: partition from nodes or api in the direction %q", way)
	}
	switch from {
	case FromAll:
		_, err := ip(ctx, "link", "set", n.Link, "down")
		return err
	case FromAPI:
		return drop(ctx, n, []string{c.ControlPlane().IP.String()}, way)
	case FromNodes:
		return drop(ctx, n, otherNodes(c, n), way)
	}
	return fmt.Errorf("partition from %q: use api, nodes or all", from)
}

// Heal ends every fault of a node.
func Heal(ctx context.Context, n layout.Node) error {
	if !NetnsExists(n.Machine) {
		return fmt.Errorf("%s is powered off or the cluster is not up: nothing to heal", n.Name)
	}
	if _, err := ip(ctx, "link", "set", n.Link, "up"); err != nil {
		return err
	}
	if Faults(ctx, n) == "" {
		return nil
	}
	return restore(ctx, n, ":"+chain+" - [0:0]")
}

// Faults describes what a node is cut off from; empty if nothing.
func Faults(ctx context.Context, n layout.Node) string {
	var faults []string
	if flags, err := os.ReadFile("/sys/class/net/" + n.Link + "/operstate"); err == nil &&
		strings.TrimSpace(string(flags)) == "down" {
		faults = append(faults, "cable out")
	}
	out, _ := inside(ctx, n.Machine, "iptables", "-S", chain)
	for line := range strings.Lines(out) {
		if _, target, ok := strings.Cut(line, " -d "); ok {
			faults = append(faults, "nothing to "+strings.Fields(target)[0])
		}
		if _, source, ok := strings.Cut(line, " -s "); ok {
			faults = append(faults, "nothing from "+strings.Fields(source)[0])
		}
	}
	return strings.Join(faults, ", ")
}

func otherNodes(c layout.Cluster, n layout.Node) []string {
	var targets []string
	for _, other := range c.AllNodes() {
		if other.Name != n.Name {
			targets = append(targets, other.IP.String(), other.PodCIDR.String())
		}
	}
	return targets
}

// drop adds rules for the targets. `iptables -C` before each makes it repeatable.
func drop(ctx context.Context, n layout.Node, targets []string, way Direction) error {
	var script strings.Builder
	fmt.Fprintf(&script, "set -e\niptables -w -N %[1]s 2>/dev/null || true\n", chain)
	ensure := func(where, rule string) {
		fmt.Fprintf(&script, "iptables -w -C %[1]s %[2]s 2>/dev/null || iptables -w -I %[1]s %[2]s\n", where, rule)
	}
	for _, t := range targets {
		if way != Outgoing {
			ensure(chain, "-s "+t+" -j DROP")
		}
		if way != Incoming {
			ensure(chain, "-d "+t+" -j DROP")
		}
	}
	for _, builtin := range []string{"INPUT", "OUTPUT", "FORWARD"} {
		ensure(builtin, "-j "+chain)
	}
	_, err := inside(ctx, n.Machine, "sh", "-c", script.String())
	return err
}

func restore(ctx context.Context, n layout.Node, rules string) error {
	_, err := command.Command{
		Argv:  []string{"nsenter", "--net=" + n.NetnsPath(), "--", "iptables-restore", "-w", "--noflush"},
		Stdin: strings.NewReader("*filter\n" + rules + "\nCOMMIT\n"),
	}.Run(ctx)
	return err
}

package network

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"syscall"

	"cnmsql.co/tools/localkube/internal/command"
	"cnmsql.co/tools/localkube/internal/layout"
)

const nsfsMagic = 0x6e736673

// EnsureHost makes the bridge and the host's routes: to Pods by their nodes, to
// Services by the gateway, whose kube-proxy knows them.
func EnsureHost(ctx context.Context, c layout.Cluster) error {
	bridge := c.Bridge()
	if !linkExists(bridge) {
		if _, err := ip(ctx, "link", "add", bridge, "type", "bridge"); err != nil {
			return err
		}
	}
	commands := []string{
		fmt.Sprintf("link set %s address %s", bridge, c.HostMAC()),
		fmt.Sprintf("addr replace %s/%d dev %s", c.HostIP(), c.MachineNet().Bits(), bridge),
		"link set " + bridge + " up",
		fmt.Sprintf("route replace %s via %s dev %s", c.ServiceNet(), c.Gateway().IP, bridge),
	}
	return batch(ctx, "", append(commands, podRoutes(c, "", bridge)...))
}

// EnsureMachine makes one machine, or repairs it. It ends a partition.
func EnsureMachine(ctx context.Context, c layout.Cluster, m layout.Machine) error {
	if err := ensureNetns(ctx, m); err != nil {
		return err
	}
	if err := ensureCable(ctx, c, m); err != nil {
		return err
	}
	if err := batch(ctx, m.Netns, machineSetup(c, m)); err != nil {
		return err
	}
	return setSysctls(ctx, m)
}

func machineSetup(c layout.Cluster, m layout.Machine) []string {
	commands := []string{
		"link set lo up",
		"link set eth0 address " + m.MAC(),
		fmt.Sprintf("addr replace %s/%d dev eth0", m.IP, c.MachineNet().Bits()),
		"link set eth0 up",
	}
	// A cluster IP needs a route before kube-proxy's rules see the packet. The
	// control plane has no kube-proxy and asks the gateway, like the host.
	if m.Name == c.ControlPlane().Name {
		commands = append(commands, fmt.Sprintf("route replace %s via %s dev eth0", c.ServiceNet(), c.Gateway().IP))
	} else {
		commands = append(commands, fmt.Sprintf("route replace %s dev eth0", c.ServiceNet()))
	}
	return append(commands, podRoutes(c, m.Name, "eth0")...)
}

func podRoutes(c layout.Cluster, except, dev string) []string {
	var commands []string
	for _, n := range c.AllNodes() {
		if n.Name != except {
			commands = append(commands, fmt.Sprintf("route replace %s via %s dev %s", n.PodCIDR, n.IP, dev))
		}
	}
	return commands
}

// ensureNetns replaces a name that pins no namespace any more, as after a reboot
// on which /run survived.
func ensureNetns(ctx context.Context, m layout.Machine) error {
	if NetnsExists(m) {
		return nil
	}
	if err := os.Remove(m.NetnsPath()); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("removing the stale namespace %s: %w", m.NetnsPath(), err)
	}
	_, err := ip(ctx, "netns", "add", m.Netns)
	return err
}

// NetnsExists reports whether the machine's namespace is there.
func NetnsExists(m layout.Machine) bool {
	var fs syscall.Statfs_t
	return syscall.Statfs(m.NetnsPath(), &fs) == nil && fs.Type == nsfsMagic
}

// ensureCable joins the machine to the bridge. Without its inner end the cable
// is of no use and recreated.
func ensureCable(ctx context.Context, c layout.Cluster, m layout.Machine) error {
	_, inside := ip(ctx, "-n", m.Netns, "link", "show", "dev", "eth0")
	if inside != nil || !linkExists(m.Link) {
		if err := RemoveLink(ctx, m.Link); err != nil {
			return err
		}
		if inside == nil {
			if _, err := ip(ctx, "-n", m.Netns, "link", "del", "eth0"); err != nil {
				return err
			}
		}
		if _, err := ip(ctx, "link", "add", m.Link, "type", "veth", "peer", "name", "eth0", "netns",
			m.Netns); err != nil {
			return err
		}
	}
	_, err := ip(ctx, "link", "set", m.Link, "master", c.Bridge(), "up")
	return err
}

// setSysctls lets a machine forward, and forbids the gateway to tell the host of
// a shorter way: around the gateway there is no kube-proxy.
func setSysctls(ctx context.Context, m layout.Machine) error {
	const script = `cd /proc/sys/net && echo 1 > ipv4/ip_forward &&
for d in all default eth0; do echo 0 > ipv4/conf/$d/send_redirects && echo 0 > ipv4/conf/$d/rp_filter || exit 1; done
if [ -e bridge/bridge-nf-call-iptables ]; then echo 1 > bridge/bridge-nf-call-iptables; fi`
	_, err := inside(ctx, m, "sh", "-c", script)
	return err
}

// BridgeFiltered reports whether frames between Pods of one node pass iptables.
func BridgeFiltered(ctx context.Context, m layout.Machine) bool {
	out, err := inside(ctx, m, "cat", "/proc/sys/net/bridge/bridge-nf-call-iptables")
	return err == nil && strings.TrimSpace(out) == "1"
}

// RemoveMachine takes a machine off the network and forgets its namespace. The
// cable goes first, so that nobody hears what the dying kernel state has to say.
func RemoveMachine(ctx context.Context, m layout.Machine) error {
	if err := RemoveLink(ctx, m.Link); err != nil {
		return err
	}
	if NetnsExists(m) {
		_, err := ip(ctx, "netns", "delete", m.Netns)
		return err
	}
	if err := os.Remove(m.NetnsPath()); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

// RemoveLink removes a link of the root namespace, if it is there.
func RemoveLink(ctx context.Context, name string) error {
	if !linkExists(name) {
		return nil
	}
	_, err := ip(ctx, "link", "del", name)
	return err
}

// Usable refuses a cluster's networks if the machine has an address or a route
// in them, other than the default route.
func Usable(c layout.Cluster) error {
	out, err := ip(context.Background(), "-4", "-o", "route", "show", "table", "all")
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		if taken, ok := routeTarget(line); ok && (taken.Overlaps(c.ServiceNet()) || taken.Overlaps(wholeNet(c))) {
			return fmt.Errorf("the machine has a route to %s, inside of %s or %s", taken, wholeNet(c), c.ServiceNet())
		}
	}
	return nil
}

func wholeNet(c layout.Cluster) netip.Prefix {
	p, _ := c.HostIP().Prefix(16)
	return p
}

// routeTarget reads where a line of `ip route` leads; types such as "local" come
// before the target.
func routeTarget(line string) (netip.Prefix, bool) {
	for i, word := range strings.Fields(line) {
		if prefix, err := netip.ParsePrefix(word); err == nil {
			return prefix, prefix.Bits() > 0
		}
		if addr, err := netip.ParseAddr(word); err == nil {
			return netip.PrefixFrom(addr, addr.BitLen()), true
		}
		if i == 1 {
			break
		}
	}
	return netip.Prefix{}, false
}

func linkExists(name string) bool {
	_, err := os.Stat("/sys/class/net/" + name)
	return err == nil
}

func ip(ctx context.Context, args ...string) (string, error) {
	return command.Run(ctx, append([]string{"ip"}, args...)...)
}

// batch runs several ip commands in one process, in a namespace if one is named.
func batch(ctx context.Context, netns string, commands []string) error {
	argv := []string{"ip"}
	if netns != "" {
		argv = append(argv, "-n", netns)
	}
	script := strings.Join(commands, "\n") + "\n"
	_, err := command.Command{
		Argv: append(argv, "-batch", "-"), Stdin: strings.NewReader(script),
		Advice: "the commands were:\n" + script,
	}.Run(ctx)
	return err
}

func inside(ctx context.Context, m layout.Machine, argv ...string) (string, error) {
	return command.Run(ctx, append([]string{"nsenter", "--net=" + m.NetnsPath(), "--"}, argv...)...)
}

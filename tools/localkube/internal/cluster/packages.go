package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cnmsql.co/tools/localkube/internal/command"
)

const cniPlugins = "/usr/lib/cni"

// needs maps a program, or a file, to the Debian package that brings it.
var needs = map[string]string{
	"containerd": "containerd", "ctr": "containerd", "runc": "runc",
	cniPlugins + "/bridge": "containernetworking-plugins",
	"iptables":             "iptables", "iptables-restore": "iptables",
	"conntrack": "conntrack", "socat": "socat", "ethtool": "ethtool",
	"ip": "iproute2", "nsenter": "util-linux", "mount": "mount",
}

func missingPackages() []string {
	var missing []string
	for program, pkg := range needs {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, pkg)
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

// ensurePackages installs what is missing. It stays when the cluster goes.
func ensurePackages(ctx context.Context) error {
	if missing := missingPackages(); len(missing) > 0 {
		if err := installPackages(ctx, missing); err != nil {
			return err
		}
	}
	loadModules(ctx)
	raiseLimits()
	return ensureLoopbackPlugin()
}

// raiseLimits makes room for several clusters: one of three nodes takes 36 of the
// 128 inotify instances that Linux allows a user, and a kubelet that gets none
// does not start. Where the limit cannot be written, it may still suffice.
func raiseLimits() {
	const file, enough = "/proc/sys/fs/inotify/max_user_instances", 1024
	data, err := os.ReadFile(file)
	if err != nil {
		return
	}
	if limit, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && limit < enough {
		_ = os.WriteFile(file, []byte(strconv.Itoa(enough)), 0o644)
	}
}

func installPackages(ctx context.Context, missing []string) error {
	advice := "install these packages yourself, and repeat: " + strings.Join(missing, " ")
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("this machine has no apt-get; %s", advice)
	}
	env := []string{"DEBIAN_FRONTEND=noninteractive"}
	update := command.Command{Argv: []string{"apt-get", "update"}, Env: env, Advice: advice}
	if _, err := update.Run(ctx); err != nil {
		return err
	}
	install := append([]string{"apt-get", "install", "-y", "--no-install-recommends"}, missing...)
	_, err := command.Command{Argv: install, Env: env, Advice: advice}.Run(ctx)
	return err
}

// loadModules tries: where the kernel has them built in there is nothing to load,
// and where they are missing the step that needs one says so.
func loadModules(ctx context.Context) {
	for _, module := range []string{"overlay", "br_netfilter", "veth"} {
		_, _ = command.Run(ctx, "modprobe", "-q", module)
	}
}

// ensureLoopbackPlugin puts the plugin where containerd looks for it, whatever
// bin_dir says.
func ensureLoopbackPlugin() error {
	const dir = "/opt/cni/bin"
	link := filepath.Join(dir, "loopback")
	if _, err := os.Stat(link); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the directory of the CNI loopback plugin: %w", err)
	}
	err := os.Symlink(filepath.Join(cniPlugins, "loopback"), link)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("offering the CNI loopback plugin: %w", err)
	}
	return nil
}

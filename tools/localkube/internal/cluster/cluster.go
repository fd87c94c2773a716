package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"cnmsql.co/tools/localkube/internal/cgroup"
	"cnmsql.co/tools/localkube/internal/kubebuild"
	"cnmsql.co/tools/localkube/internal/layout"
	"cnmsql.co/tools/localkube/internal/network"
	"cnmsql.co/tools/localkube/internal/process"
	"cnmsql.co/tools/localkube/internal/registry"
)

// Cluster is a cluster that exists, or is being made.
type Cluster struct {
	layout.Cluster
	build   kubebuild.Build
	cgroups cgroup.Host
	out     io.Writer
}

// Registry returns the clusters of this machine.
func Registry() registry.Registry {
	return registry.Registry{Root: registry.DefaultRoot, Usable: network.Usable}
}

// Open finds a cluster by its name.
func Open(name, cache string, out io.Writer) (*Cluster, error) {
	plan, ok, err := Registry().Find(name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("there is no cluster %q on this machine: make it with `localkube up --name %s`",
			name, name)
	}
	return newCluster(plan, cache, out)
}

func newCluster(plan layout.Cluster, cache string, out io.Writer) (*Cluster, error) {
	host, err := cgroup.Detect()
	if err != nil {
		return nil, err
	}
	build, _ := kubebuild.Find(cache)
	return &Cluster{Cluster: plan, build: build, cgroups: host, out: out}, nil
}

// Kubectl is the path of the kubectl that came with the cluster's Kubernetes.
func (c *Cluster) Kubectl() string { return c.build.Component("kubectl") }

// lock keeps two commands from changing one cluster at once. The file outlives
// the cluster: removing a lock would let two commands hold it.
func lock(name string) (unlock func(), err error) {
	const dir = "/run/lock"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return registry.Lock(filepath.Join(dir, "localkube-"+name))
}

// step runs one part of a command and tells how long it took.
func (c *Cluster) step(what string, do func() error) error {
	began := time.Now()
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	fmt.Fprintf(c.out, "%6.1fs  %s\n", time.Since(began).Seconds(), what)
	return nil
}

// errEnds says that what is waited for will not come, because a process ends again and again.
var errEnds = errors.New("ends whenever it is started")

// waitFor repeats check until it succeeds. It fails at once when one of the
// processes the check hangs on has died, and shows the end of that log.
func waitFor(ctx context.Context, what string, limit time.Duration, needs []process.Process,
	check func(context.Context) error) error {
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if errors.Is(err, errEnds) {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
		for _, p := range needs {
			if _, ok := p.Running(); !ok {
				return fmt.Errorf("waiting for %s: %s has ended; %s", what, p.Name, logEnd(p))
			}
		}
		select {
		case <-caller.Done():
			return fmt.Errorf("waiting for %s: %w", what, context.Cause(caller))
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: not within %v: %w; %s", what, limit, err, logEnds(needs))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func logEnd(p process.Process) string {
	return fmt.Sprintf("its log %s ends:\n%s", p.LogFile, p.Tail(15))
}

func logEnds(processes []process.Process) string {
	text := ""
	for _, p := range processes {
		text += fmt.Sprintf("%s: %s\n", p.Name, logEnd(p))
	}
	return text
}

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"cnmsql.co/tools/localkube/internal/kubebuild"
	"cnmsql.co/tools/localkube/internal/layout"
	"cnmsql.co/tools/localkube/internal/network"
	"cnmsql.co/tools/localkube/internal/process"
	"cnmsql.co/tools/localkube/internal/render"
)

// Options of Up; zero values keep what an existing cluster has.
type Options struct {
	Name  string
	Dir   string
	Nodes int
	Cache string
}

// Up makes a cluster, or repairs one: it starts what does not run, powers on
// every node and ends every partition. It returns the kubeconfig's path.
func Up(ctx context.Context, o Options, out io.Writer) (string, error) {
	unlock, err := lock(o.Name)
	if err != nil {
		return "", err
	}
	defer unlock()
	c, err := claim(o, out)
	if err != nil {
		return "", err
	}
	if err := c.step("Debian packages", func() error { return ensurePackages(ctx) }); err != nil {
		return "", err
	}
	if err := c.ensureBuild(ctx, o.Cache); err != nil {
		return "", err
	}
	return c.Kubeconfig(), c.start(ctx)
}

func (c *Cluster) ensureBuild(ctx context.Context, cache string) error {
	what := "Kubernetes " + kubebuild.Version
	if _, ok := kubebuild.Find(cache); !ok {
		fmt.Fprintf(c.out, "         building %s, once: some minutes\n", what)
	}
	return c.step(what, func() (err error) {
		c.build, err = kubebuild.Ensure(ctx, cache)
		return err
	})
}

// start is the order of a cold start; every part finds out what is there.
func (c *Cluster) start(ctx context.Context) error {
	began := time.Now()
	for _, s := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"certificates and network", c.prepare},
		{"etcd, API server and container runtimes", c.startFoundation},
		{"controllers, DNS, kubelets", c.startRest},
		{"DNS, storage class and rights", c.applyObjects},
	} {
		if err := c.step(s.what, func() error { return s.do(ctx) }); err != nil {
			return err
		}
	}
	return c.step(fmt.Sprintf("%d nodes ready", c.Nodes), func() error { return c.waitReady(ctx, began) })
}

func (c *Cluster) prepare(ctx context.Context) error {
	if err := c.writeIdentities(); err != nil {
		return err
	}
	if err := c.writeConfigs(); err != nil {
		return err
	}
	if err := network.EnsureHost(ctx, c.Cluster); err != nil {
		return err
	}
	for _, m := range []layout.Machine{c.ControlPlane(), c.Gateway()} {
		if err := c.prepareMachine(ctx, m); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	return nil
}

// startFoundation prepares the nodes while the API server comes up.
func (c *Cluster) startFoundation(ctx context.Context) error {
	foundation := []process.Process{c.etcd(), c.apiServer()}
	if err := ensureAll(foundation); err != nil {
		return err
	}
	if err := c.onAllNodes(func(n layout.Node) error { return c.prepareNode(ctx, n) }); err != nil {
		return err
	}
	api, err := c.admin()
	if err != nil {
		return err
	}
	return waitFor(ctx, "the API server", 2*time.Minute, foundation, func(ctx context.Context) error {
		_, err := api.Get(ctx, "/readyz")
		return err
	})
}

func (c *Cluster) startRest(context.Context) error {
	rest := c.controllers()
	for _, n := range c.AllNodes() {
		rest = append(rest, c.kubelet(n), c.kubeProxy(n))
	}
	return ensureAll(rest)
}

func ensureAll(processes []process.Process) error {
	for _, p := range processes {
		if err := p.Ensure(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) applyObjects(ctx context.Context) error {
	api, err := c.admin()
	if err != nil {
		return err
	}
	for _, o := range render.Objects(c.Cluster) {
		if err := api.Apply(ctx, o.Path, o.Body); err != nil {
			return fmt.Errorf("applying %s: %w", o.Path, err)
		}
	}
	return nil
}

// onAllNodes does something on every node at once.
func (c *Cluster) onAllNodes(do func(layout.Node) error) error {
	nodes := c.AllNodes()
	failed := make([]error, len(nodes))
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() { failed[i] = do(n) })
	}
	all.Wait()
	return joinErrors(failed)
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

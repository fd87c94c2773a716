package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/test/loadbench/throughput"
	"cnmsql.co/test/testbed"
)

var key = types.NamespacedName{Namespace: "load", Name: "load"}

const manifest = `apiVersion: mysql.cnmsql.co/v1alpha1
kind: Cluster
metadata: {name: load, namespace: load}
spec:
  instances: 3
  affinity: {podAntiAffinityType: required}
  storage: {size: 4Gi}
  mysql: {parameters: {max_connections: "%d"}%s}
%s`

const (
	// kubernetes is the name of the local Kubernetes, which test/bench uses, too: the two must
	// not measure at the same time.
	kubernetes = "bench"
	// volumes is below where the local Kubernetes has them.
	volumes = "/var/lib/localkube"
	// patience is how long a cluster may take to be Healthy.
	patience = 5 * time.Minute
)

// durability of a cluster: what stands in spec.mysql and in spec for it.
type durability struct {
	mysql, spec string
	// awaits and always are a place's.
	awaits, always bool
}

var durabilities = map[string]durability{
	"async":           {},
	"semi-sync":       {mysql: ", semiSync: {enabled: true, dataDurability: preferred}", awaits: true},
	throughput.Quorum: {mysql: ", semiSync: {enabled: true, dataDurability: quorum}", awaits: true, always: true},
	"group":           {spec: "  replication: {mode: groupReplication}\n"},
}

func (d durability) manifest() string {
	return fmt.Sprintf(manifest, maxConnections, d.mysql, d.spec)
}

// stage is a local Kubernetes with the operator on it.
type stage struct {
	bed  *testbed.Bed
	keep bool
}

// newStage brings it up. The data in a directory must be on the disk of its volumes.
func newStage(ctx context.Context, o options, dir string) (*stage, error) {
	if err := testbed.Claim(kubernetes); err != nil {
		return nil, err
	}
	bed, err := testbed.Local(ctx, kubernetes, os.Stdout)
	if err != nil {
		return nil, err
	}
	s := &stage{bed, o.keep}
	if err = bed.Install(ctx, testbed.OperatorImage, testbed.MySQLImage); err == nil {
		err = sameDisk(dir, volumes)
	}
	if err == nil {
		err = s.clear(ctx) // what a former run has left
	}
	if err != nil {
		return nil, errors.Join(err, s.close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// sameDisk fails if two directories are on different file systems.
func sameDisk(a, b string) error {
	var one, other syscall.Stat_t
	if err := syscall.Stat(a, &one); err != nil {
		return fmt.Errorf("looking at %s: %w", a, err)
	}
	if err := syscall.Stat(b, &other); err != nil {
		return fmt.Errorf("looking at %s: %w", b, err)
	}
	if one.Dev != other.Dev {
		return fmt.Errorf("%s is on another file system than %s: name a directory there with -dir", a, b)
	}
	return nil
}

func (s *stage) close(ctx context.Context) error {
	if s.keep {
		return nil
	}
	return testbed.Down(ctx, kubernetes, os.Stdout)
}

// clear removes the Cluster first: in a namespace that goes as a whole its Pods go first, and
// the primary waits for a successor.
func (s *stage) clear(ctx context.Context) error {
	for _, what := range [][]string{
		{"delete", "cluster", key.Name, "-n", key.Namespace, "--cascade=foreground"},
		{"delete", "namespace", key.Namespace},
	} {
		if _, err := s.bed.Kubectl(ctx, nil, append(what, "--ignore-not-found", "--wait=true")...); err != nil {
			return err
		}
	}
	return nil
}

// cluster makes a Healthy cluster of three instances with a durability. Its clients come
// through -rw; replicas are asked at their Pods' addresses.
func (s *stage) cluster(ctx context.Context, name string, at *place) error {
	d := durabilities[name]
	at.awaits, at.always = d.awaits, d.always
	if err := s.begin(ctx, d); err != nil {
		return errors.Join(err, s.undo(ctx))
	}
	if err := s.find(ctx, at); err != nil {
		return errors.Join(err, s.undo(ctx))
	}
	at.end = s.undo
	return nil
}

// undo removes the cluster, unless it is to be kept for somebody to look at; the next one
// takes its place in any case.
func (s *stage) undo(ctx context.Context) error {
	if s.keep {
		return nil
	}
	return s.clear(context.WithoutCancel(ctx))
}

func (s *stage) begin(ctx context.Context, d durability) error {
	if err := s.clear(ctx); err != nil {
		return err
	}
	if _, err := s.bed.Kubectl(ctx, nil, "create", "namespace", key.Namespace); err != nil {
		return err
	}
	_, err := s.bed.Kubectl(ctx, strings.NewReader(d.manifest()), "apply", "-f", "-")
	return err
}

// find waits until the cluster is Healthy, and finds its instances.
func (s *stage) find(ctx context.Context, at *place) error {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := s.bed.Until(ctx, key, testbed.Healthy)
	if err != nil {
		return err
	}
	say("three instances after %s", time.Since(begun).Round(100*time.Millisecond))
	primary, names := c.Status.CurrentPrimary, c.Status.InstanceNames
	rw, err := s.bed.Endpoint(ctx, key, "rw")
	if err != nil {
		return err
	}
	at.primary = loginOf(rw)
	for _, name := range names {
		if name == primary {
			continue
		}
		e, err := s.bed.InstanceEndpoint(ctx, key, name)
		if err != nil {
			return err
		}
		at.replicas = append(at.replicas, loginOf(e))
	}
	if len(at.replicas) != len(names)-1 {
		return fmt.Errorf("the primary %q is none of %v", primary, names)
	}
	at.same = func(ctx context.Context) error { return s.same(ctx, primary) }
	return nil
}

func (s *stage) same(ctx context.Context, primary string) error {
	c, err := s.bed.Get(ctx, key)
	if err == nil && c.Status.CurrentPrimary != primary {
		err = fmt.Errorf("the primary was %s and is %q now: the figures would be of a failover",
			primary, c.Status.CurrentPrimary)
	}
	return err
}

func loginOf(e testbed.Endpoint) *driver.Config {
	return clientOf(e.Addr, e.User, e.Password, e.Database, e.TLS)
}

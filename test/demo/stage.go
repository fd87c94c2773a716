package main

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/layout"
	"cnmsql.co/test/testbed"
)

//go:embed cluster.yaml
var manifest string

var cluster = types.NamespacedName{Namespace: "cnmsql-demo", Name: "demo"}

// clusterResource is how kubectl names Clusters of MySQL where others have Clusters, too.
const clusterResource = "clusters.mysql.cnmsql.co"

// stage is where the demo plays, and what it has measured so far.
type stage struct {
	bed   *testbed.Bed
	image string // that holds the writer
	load  *load

	first, second           string // primaries
	provisioned, healed     time.Duration
	result                  result
	killed                  time.Time
	proof, lastPhaseAndNote string
}

func say(format string, args ...any) {
	fmt.Printf("%s  %s\n", time.Now().Format("15:04:05.000"), fmt.Sprintf(format, args...))
}

// clear removes what an earlier run left: the Cluster first, for in a namespace that
// is deleted as a whole the Pods go first, and their primary waits for a successor.
func (s *stage) clear(ctx context.Context) error {
	if s.bed.Name == "" {
		if there, err := namespaceIsThere(ctx, s.bed.Client); err != nil || !there {
			return err
		}
	}
	clusters, err := clustersOf(ctx, s.bed.Client)
	if err != nil {
		return err
	}
	if slices.Contains(clusters, cluster) {
		err = s.delete(ctx, clusterResource, cluster.Name, "-n", cluster.Namespace, "--cascade=foreground")
	}
	if err != nil {
		return err
	}
	return s.delete(ctx, "namespace", cluster.Namespace)
}

func (s *stage) delete(ctx context.Context, what ...string) error {
	_, err := s.bed.Kubectl(ctx, nil, append([]string{"delete", "--ignore-not-found", "--wait=true"}, what...)...)
	return err
}

func (s *stage) provision(ctx context.Context) error {
	fmt.Printf("\n%s\n", manifest)
	if err := s.bed.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster.Namespace,
		Labels: map[string]string{labelManager: managerDemo}}}); err != nil {
		return fmt.Errorf("make the namespace %s: %w", cluster.Namespace, err)
	}
	begun := time.Now()
	say("kubectl apply -f cluster.yaml")
	if _, err := s.bed.Kubectl(ctx, strings.NewReader(manifest), "-n", cluster.Namespace, "apply",
		"-f", "-"); err != nil {
		return err
	}
	c, err := s.await(ctx, 5*time.Minute, testbed.Healthy)
	if err != nil {
		return err
	}
	s.provisioned, s.first = time.Since(begun), c.Status.CurrentPrimary
	say("three instances are ready after %s; the primary is %s", s.provisioned.Round(100*time.Millisecond), s.first)
	return nil
}

func (s *stage) write(ctx context.Context) error {
	say("in a Pod, 4 connections write a row every 5 ms each, through the Service %s-rw", cluster.Name)
	var err error
	if s.load, err = startLoad(ctx, s.bed, s.image); err != nil {
		return err
	}
	return s.watchWrites(ctx, 5)
}

// watchWrites lets some seconds pass, telling how many rows were acknowledged.
func (s *stage) watchWrites(ctx context.Context, seconds int) error {
	s.load.forget()
	for range seconds {
		p, err := s.load.next(ctx)
		if err != nil {
			return err
		}
		say("%d rows acknowledged", p.acknowledged)
	}
	return nil
}

// killPrimary kills by a program that is in the Pod anyway, so that it does not
// matter on which machine that is.
func (s *stage) killPrimary(ctx context.Context) error {
	say("kill -9 of mysqld in %s", s.first)
	s.killed = time.Now()
	pod := types.NamespacedName{Namespace: cluster.Namespace, Name: s.first}
	return s.bed.Exec(ctx, pod, layout.Container, layout.Binary, "instance", "kill-mysqld")
}

// heal waits for all three to be well again.
func (s *stage) heal(ctx context.Context) error {
	c, err := s.await(ctx, 2*time.Minute, func(c *v1alpha1.Cluster) bool {
		return testbed.Healthy(c) && c.Status.PrimaryEpoch > 1
	})
	if err != nil {
		return err
	}
	s.healed, s.second = time.Since(s.killed), c.Status.CurrentPrimary
	if p := c.Status.Promotion; p != nil {
		s.proof = p.Proof + ": " + p.Evidence
	}
	say("all three instances are healthy again, %s after the kill; the primary is %s",
		s.healed.Round(100*time.Millisecond), s.second)
	return s.watchWrites(ctx, 3)
}

// verify also learns how long the outage was, by the writer's own clock: no two
// machines' clocks are compared.
func (s *stage) verify(ctx context.Context) error {
	var err error
	s.result, err = s.load.end(ctx)
	return err
}

// await waits for the cluster, telling what the operator does meanwhile.
func (s *stage) await(ctx context.Context, atMost time.Duration,
	wished func(*v1alpha1.Cluster) bool) (*v1alpha1.Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	return s.bed.Until(ctx, cluster, func(c *v1alpha1.Cluster) bool {
		if note := c.Status.Phase + ": " + c.Status.PhaseReason; note != s.lastPhaseAndNote && c.Status.Phase != "" {
			s.lastPhaseAndNote = note
			say("  %s", note)
		}
		return wished(c)
	})
}

func (s *stage) summary() {
	kubeconfig := s.bed.Kubeconfig
	fmt.Printf(`
  measured                                   |
  -------------------------------------------+----------------------------
  apply -> three instances ready             | %s
  kill -9 of the primary -> writable again   | %s
  kill -9 -> all three instances healthy     | %s
  primary before, after                      | %s, %s
  rows acknowledged                          | %d
  rows lost                                  | %d

  Writable again: from the last write that was acknowledged before, the longest time without one.
  The proof by which %s was promoted: %s

  Look around:
    export KUBECONFIG=%s PATH=$PATH:%s
    kubectl -n %s get cluster,pod,service
    kubectl cnmsql -n %s status %s
    kubectl cnmsql -n %s mysql %s
  Remove it all: make demo-down
`, round(s.provisioned), round(s.result.outage()), round(s.healed), s.first, s.second,
		s.result.Acknowledged, s.result.Rows.Lost, s.second, s.proof,
		kubeconfig, s.bed.BinDir(), cluster.Namespace, cluster.Namespace, cluster.Name, cluster.Namespace, cluster.Name)
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }

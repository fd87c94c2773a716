package main

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/test/testbed"
	"cnmsql.co/test/writer"
)

//go:embed cluster.yaml
var manifest string

var cluster = types.NamespacedName{Namespace: "cnmsql-demo", Name: "demo"}

// stage is where the demo plays, and what it has measured so far.
type stage struct {
	bed      *testbed.Bed
	endpoint testbed.Endpoint
	writer   *writer.Writer

	first, second           string // primaries
	provisioned, outage     time.Duration
	healed, longest         time.Duration
	report                  writer.Report
	verdict                 writer.Verification
	killed                  time.Time
	proof, lastPhaseAndNote string
}

func say(format string, args ...any) {
	fmt.Printf("%s  %s\n", time.Now().Format("15:04:05.000"), fmt.Sprintf(format, args...))
}

// clear removes what an earlier run left.
func (s *stage) clear(ctx context.Context) error {
	_, err := s.bed.Kubectl(ctx, nil, "delete", "namespace", cluster.Namespace, "--ignore-not-found", "--wait=true")
	return err
}

func (s *stage) provision(ctx context.Context) error {
	fmt.Printf("\n%s\n", manifest)
	if _, err := s.bed.Kubectl(ctx, nil, "create", "namespace", cluster.Namespace); err != nil {
		return err
	}
	begun := time.Now()
	say("kubectl apply -f cluster.yaml")
	if _, err := s.bed.Kubectl(ctx, strings.NewReader(manifest), "-n", cluster.Namespace, "apply", "-f", "-"); err != nil {
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
	var err error
	if s.endpoint, err = s.bed.Endpoint(ctx, cluster, "rw"); err != nil {
		return err
	}
	s.writer = s.endpoint.Writer()
	say("4 connections write a row every 5 ms each, through the Service %s-rw (%s)", cluster.Name, s.endpoint.Addr)
	if err := s.writer.Start(ctx); err != nil {
		return err
	}
	return s.watchWrites(ctx, 5)
}

// watchWrites lets some seconds pass, telling how many rows were acknowledged.
func (s *stage) watchWrites(ctx context.Context, seconds int) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for range seconds {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			say("%d rows acknowledged", s.writer.Snapshot().Acknowledged)
		}
	}
	return nil
}

func (s *stage) killPrimary(ctx context.Context) error {
	say("kill -9 of mysqld in %s", s.first)
	var err error
	if s.killed, err = s.bed.KillMysqld(ctx, cluster, s.first); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	back, err := s.writer.WaitAck(waiting, s.killed)
	if err != nil {
		return fmt.Errorf("no write was acknowledged within 2 minutes of the kill: %w", err)
	}
	s.outage = back.Sub(s.killed)
	say("writable again after %s", s.outage.Round(time.Millisecond))
	return nil
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
	say("all three instances are healthy again, %s after the kill; the primary is %s", s.healed.Round(100*time.Millisecond), s.second)
	return s.watchWrites(ctx, 3)
}

func (s *stage) verify(ctx context.Context) error {
	s.report = s.writer.Stop()
	s.longest = s.report.LongestGap.Duration()
	db, err := s.endpoint.Open()
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	s.verdict, err = s.writer.Verify(ctx, db)
	return err
}

// await waits for the cluster, telling what the operator does meanwhile.
func (s *stage) await(ctx context.Context, atMost time.Duration, wished func(*v1alpha1.Cluster) bool) (*v1alpha1.Cluster, error) {
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
  longest gap between acknowledged writes    | %s
  kill -9 -> all three instances healthy     | %s
  primary before, after                      | %s, %s
  rows acknowledged                          | %d
  rows lost                                  | %d

  The proof by which %s was promoted: %s

  Look around:
    export KUBECONFIG=%s PATH=$PATH:%s
    kubectl -n %s get cluster,pod,service
    kubectl cnmsql -n %s status %s
    kubectl cnmsql -n %s mysql %s
  Remove it all: make demo-down
`, round(s.provisioned), round(s.outage), round(s.longest), round(s.healed), s.first, s.second,
		s.report.Acknowledged, len(s.verdict.Missing), s.second, s.proof,
		kubeconfig, s.bed.BinDir(), cluster.Namespace, cluster.Namespace, cluster.Name, cluster.Namespace, cluster.Name)
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }

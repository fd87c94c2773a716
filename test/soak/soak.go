package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/test/testbed"
	"cnmsql.co/test/writer"
)

const manifest = `
apiVersion: v1
kind: Namespace
metadata: {name: soak}
---
apiVersion: mysql.cnmsql.co/v1alpha1
kind: Cluster
metadata: {name: soak, namespace: soak}
spec:
  instances: 3
  affinity: {podAntiAffinityType: required}
  storage: {size: 1Gi}
  mysql:
    semiSync: {enabled: true, dataDurability: quorum}
`

var key = types.NamespacedName{Namespace: "soak", Name: "soak"}

const (
	provisionLimit = 3 * time.Minute
	// healLimit is how long the cluster may take until it is healthy once nothing
	// hinders it any more (I7). A node that was lost is called ready after some 40 s.
	healLimit = 4 * time.Minute
)

// soak is one run.
type soak struct {
	options
	bed   *testbed.Bed
	write *writer.Writer

	registers *registers
	drawn     map[string]int // faults by name
	slowest   time.Duration  // until healthy again
	reinited  []string
	judged    verdicts

	mu         sync.Mutex
	violations []string
}

// violated notes that an invariant does not hold; the run goes on.
func (s *soak) violated(invariant, format string, args ...any) {
	text := invariant + ": " + fmt.Sprintf(format, args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.violations, text) {
		s.violations = append(s.violations, text)
		fmt.Println("VIOLATION", text)
	}
}

func (s *soak) provision(ctx context.Context) error {
	if _, err := s.bed.Kubectl(ctx, nil, "delete", "namespace", key.Namespace, "--ignore-not-found",
		"--wait=true"); err != nil {
		return err
	}
	if _, err := s.bed.Kubectl(ctx, strings.NewReader(manifest), "apply", "--server-side", "-f", "-"); err != nil {
		return err
	}
	return s.healthy(ctx, provisionLimit)
}

func (s *soak) healthy(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	_, err := s.bed.Until(ctx, key, testbed.Healthy)
	return err
}

// work writes and draws faults until the time is over, and judges.
func (s *soak) work(ctx context.Context) error {
	e, err := s.bed.Endpoint(ctx, key, "rw")
	if err != nil {
		return err
	}
	s.write = e.WriterOn(8)
	if err := s.write.Start(ctx); err != nil {
		return err
	}
	if s.registers, err = startRegisters(ctx, e); err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go s.watch(watching)
	if err := s.drawFaults(ctx); err != nil {
		return err
	}
	s.write.Stop()
	s.registers.stop()
	return s.judge(ctx)
}

// drawFaults lets one fault follow another: mostly when the cluster has recovered from
// the last, sometimes at once.
func (s *soak) drawFaults(ctx context.Context) error {
	random := rand.New(rand.NewPCG(s.seed, 0))
	d := &drawer{s: s, random: random}
	until := time.Now().Add(s.lasts)
	for time.Now().Before(until) && ctx.Err() == nil {
		undo := []func(context.Context) error{d.draw(ctx)}
		if random.IntN(4) == 0 {
			undo = append(undo, d.draw(ctx))
		}
		if !pause(ctx, time.Duration(1+random.IntN(12))*time.Second) {
			break
		}
		for _, u := range undo {
			if err := u(ctx); err != nil {
				return err
			}
		}
		s.recover(ctx)
		pause(ctx, time.Duration(random.IntN(3000))*time.Millisecond)
	}
	return ctx.Err()
}

// recover waits until all is well. What has diverged, which under quorum is nothing that
// was acknowledged, is recreated on a human's word: this is the human.
func (s *soak) recover(ctx context.Context) {
	began := time.Now()
	within, cancel := context.WithTimeout(ctx, healLimit)
	defer cancel()
	c, err := s.bed.Until(within, key, func(c *v1alpha1.Cluster) bool {
		return testbed.Healthy(c) || len(c.Status.DivergedInstances) > 0 && c.Status.Diagnosis == "PrimaryHealthy"
	})
	if err == nil && len(c.Status.DivergedInstances) > 0 {
		names := strings.Join(c.Status.DivergedInstances, ",")
		s.reinited = append(s.reinited, names)
		fmt.Println("  diverged, and recreated:", names)
		if _, err = s.bed.Kubectl(ctx, nil, "-n", key.Namespace, "annotate", "--overwrite", "cluster", key.Name,
			v1alpha1.AnnotationReinit+"="+names); err == nil {
			err = s.healthy(within, healLimit)
		}
	}
	took := time.Since(began)
	s.slowest = max(s.slowest, took)
	if err != nil && ctx.Err() == nil {
		s.violated("I7", "not healthy %s after the last fault ended: %v", took.Round(time.Second), err)
	}
	fmt.Printf("  healthy after %s\n", took.Round(100*time.Millisecond))
}

// watch holds what the status says against I4 and I5, at every change.
func (s *soak) watch(ctx context.Context) {
	var established string
	_, _ = s.bed.Until(ctx, key, func(c *v1alpha1.Cluster) bool {
		st := &c.Status
		if p := st.Promotion; p != nil && slices.Contains(st.DivergedInstances, p.Instance) {
			s.violated("I4", "%s has diverged and is promoted in epoch %d", p.Instance, p.Epoch)
		}
		if st.EstablishedAt != nil {
			if at := st.EstablishedAt.String(); established == "" {
				established = at
			} else if at != established {
				s.violated("I5", "the cluster was established again, at %s", at)
			}
		}
		return false
	})
}

// pause waits, at most until ctx ends, and reports whether the whole of the pause has passed.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func (s *soak) report(out io.Writer) {
	fmt.Fprintf(out, "\nsoak: seed %d, %s\n", s.seed, s.lasts)
	if s.write != nil {
		r := s.write.Stop()
		fmt.Fprintf(out, "  rows acknowledged %d, unknown %d, refused %d; longest gap %s\n", r.Acknowledged, r.Unknown,
			r.Refused, r.LongestGap.Duration())
	}
	fmt.Fprintf(out, "  %s\n", s.judged)
	fmt.Fprintf(out, "  slowest recovery %s; diverged and recreated: %d\n",
		s.slowest.Round(time.Second), len(s.reinited))
	for _, name := range slices.Sorted(maps.Keys(s.drawn)) {
		fmt.Fprintf(out, "  %4d  %s\n", s.drawn[name], name)
	}
	for _, v := range s.violations {
		fmt.Fprintf(out, "  VIOLATION %s\n", v)
	}
	if len(s.violations) == 0 {
		fmt.Fprintln(out, "  no invariant was violated")
	}
}

// show prints what a person would look at first.
func (s *soak) show(ctx context.Context) {
	for _, args := range [][]string{
		{"get", "cluster", key.Name, "-o", "yaml"}, {"get", "pod", "-o", "wide"},
		{"get", "events", "--sort-by=.lastTimestamp"},
		{"logs", "--tail=60", "--prefix", "-l", v1alpha1.LabelCluster + "=" + key.Name},
	} {
		out, _ := s.bed.Kubectl(ctx, nil, append([]string{"-n", key.Namespace}, args...)...)
		fmt.Printf("kubectl %s\n%s", strings.Join(args, " "), out)
	}
}

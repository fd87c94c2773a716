package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/test/testbed"
	"cnmsql.co/test/writer"
)

var key = types.NamespacedName{Namespace: "bench", Name: "bench"}

const manifest = `apiVersion: mysql.cnmsql.co/v1alpha1
kind: Cluster
metadata: {name: bench, namespace: bench}
spec:
  instances: 3
  affinity: {podAntiAffinityType: required}
  storage: {size: 1Gi}
`

const (
	// recovery is how long a cluster may take to be Healthy again, with or without help.
	recovery = 3 * time.Minute
	// interruption is how long a gap must be to be counted as one.
	interruption = 200 * time.Millisecond
	// calm is how long is written before a fault, and after the cluster is well again.
	calm = 3 * time.Second
)

// stage is a local Kubernetes with one cluster on it.
type stage struct {
	bed        *testbed.Bed
	durability string
	trace      bool // print each run's steps
	loaded     bool // the machine is busy, and so is the cluster
}

func say(format string, args ...any) {
	fmt.Printf("%s  %s\n", time.Now().UTC().Format("15:04:05"), fmt.Sprintf(format, args...))
}

// set makes sure that there is a Healthy cluster with that durability.
func (s *stage) set(ctx context.Context, durability, spec string) error {
	if s.durability == durability {
		return nil
	}
	if err := s.clear(ctx); err != nil {
		return err
	}
	if _, err := s.bed.Kubectl(ctx, nil, "create", "namespace", key.Namespace); err != nil {
		return err
	}
	if _, err := s.bed.Kubectl(ctx, strings.NewReader(manifest+spec), "apply", "-f", "-"); err != nil {
		return err
	}
	begun := time.Now()
	if _, err := s.until(ctx, testbed.Healthy); err != nil {
		return err
	}
	say("%s: three instances after %s", durability, time.Since(begun).Round(100*time.Millisecond))
	s.durability = durability
	return nil
}

// clear removes the Cluster first: in a namespace that goes as a whole its Pods go
// first, and the primary waits for a successor.
func (s *stage) clear(ctx context.Context) error {
	s.durability = ""
	for _, what := range [][]string{{"delete", "cluster", key.Name, "-n", key.Namespace, "--cascade=foreground"},
		{"delete", "namespace", key.Namespace}} {
		if _, err := s.bed.Kubectl(ctx, nil, append(what, "--ignore-not-found", "--wait=true")...); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) until(ctx context.Context, wished func(*v1alpha1.Cluster) bool) (*v1alpha1.Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, recovery)
	defer cancel()
	return s.bed.Until(ctx, key, wished)
}

// primary is the primary's Pod, on the leading operator's node or on another: what is
// measured is the loss of both, or that of the primary alone.
func (s *stage) primary(ctx context.Context, withOperator bool) (*corev1.Pod, error) {
	leader, err := s.bed.Leader(ctx)
	if err != nil {
		return nil, err
	}
	c, err := s.until(ctx, testbed.Healthy)
	if err != nil {
		return nil, err
	}
	first := c.Status.CurrentPrimary
	for _, name := range append([]string{first}, c.Status.InstanceNames...) {
		var pod corev1.Pod
		if err := s.bed.Client.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: name}, &pod); err != nil {
			return nil, err
		}
		if (pod.Spec.NodeName == leader.Spec.NodeName) != withOperator {
			continue
		}
		if name != first {
			if err := s.switchTo(ctx, name); err != nil {
				return nil, err
			}
		}
		_, err := s.until(ctx, func(c *v1alpha1.Cluster) bool {
			return c.Status.CurrentPrimary == name && testbed.Healthy(c)
		})
		return &pod, err
	}
	return nil, fmt.Errorf("no instance is where it is wished, beside the leading operator on %s or away from it",
		leader.Spec.NodeName)
}

func (s *stage) switchTo(ctx context.Context, instance string) error {
	c, err := s.bed.Get(ctx, key)
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"status":{"targetPrimary":%q}}`, instance)
	return s.bed.Client.Status().Patch(ctx, c, client.RawPatch("application/merge-patch+json", patch))
}

// run does one fault under load and tells what it was like.
func (s *stage) run(ctx context.Context, f fault) (sample, error) {
	primary, err := s.primary(ctx, f.withOperator)
	if err != nil {
		return sample{}, err
	}
	e, err := s.bed.Endpoint(ctx, key, "rw")
	if err != nil {
		return sample{}, err
	}
	w := e.Writer()
	if s.loaded {
		w = e.WriterAtFullSpeed(loadedConnections)
		rest, err := busy(ctx)
		if err != nil {
			return sample{}, err
		}
		defer rest()
	}
	if err := w.Start(ctx); err != nil {
		return sample{}, err
	}
	defer w.Stop()
	if err := acknowledged(ctx, w, time.Now().Add(calm)); err != nil {
		return sample{}, err
	}
	rec := s.record(ctx)
	at, err := f.do(ctx, s, primary)
	if err != nil {
		return sample{}, err
	}
	out, err := s.observe(ctx, f, primary, w, at)
	if err != nil {
		return out, err
	}
	report := w.Stop()
	out.Steps = rec.steps(ctx, s, at, report.LongestGap.End)
	out.Gap, out.Acknowledged = secondsOf(report.LongestGap.Duration()), report.Acknowledged
	if s.trace {
		say("  %d refused, %d unknown, slowest write %s; errors: %v", report.Refused, report.Unknown,
			report.Latency.Max, report.Errors)
	}
	out.Interruptions = len(w.GapsOver(interruption))
	db, err := e.Open()
	if err != nil {
		return out, err
	}
	defer func() { _ = db.Close() }()
	v, err := w.VerifyWithin(ctx, db, 30*time.Second)
	if err == nil && len(v.Extra) > 0 {
		err = fmt.Errorf("%d rows are there that the server had refused", len(v.Extra))
	}
	out.Lost = len(v.Missing)
	return out, err
}

// observe waits until all is well again after a fault. A former primary that holds
// what nobody else does is recreated, as a human would have it done.
func (s *stage) observe(ctx context.Context, f fault, primary *corev1.Pod, w *writer.Writer,
	at time.Time) (sample, error) {
	var out sample
	err := acknowledged(ctx, w, at.Add(max(time.Second, f.hold)))
	if f.undo != nil {
		at = time.Now()
		err = errors.Join(err, f.undo(ctx, s, primary.Spec.NodeName))
	}
	if err != nil {
		return out, err
	}
	ended := func(c *v1alpha1.Cluster) bool {
		return c.Status.CurrentPrimary != primary.Name && testbed.Healthy(c) ||
			slices.Contains(c.Status.DivergedInstances, primary.Name)
	}
	c, err := s.until(ctx, ended)
	if err != nil {
		return out, err
	}
	if testbed.Healthy(c) {
		out.Healthy = secondsOf(time.Since(at))
	} else {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationReinit, primary.Name)
		if err := s.bed.Client.Patch(ctx, c, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return out, err
		}
		healed := func(c *v1alpha1.Cluster) bool { return testbed.Healthy(c) && len(c.Status.DivergedInstances) == 0 }
		if _, err := s.until(ctx, healed); err != nil {
			return out, err
		}
	}
	return out, acknowledged(ctx, w, time.Now().Add(calm))
}

// acknowledged waits for a write that began after a moment.
func acknowledged(ctx context.Context, w *writer.Writer, after time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, recovery)
	defer cancel()
	_, err := w.WaitAck(ctx, after)
	if err != nil {
		return fmt.Errorf("no write was acknowledged within %s: %w", recovery, err)
	}
	return nil
}

// load is the machine's load average of one minute.
func load() float64 {
	var one float64
	text, _ := os.ReadFile("/proc/loadavg")
	_, _ = fmt.Sscan(string(text), &one)
	return one
}

// tell keeps what is known of a cluster that did not become well: soon it is gone.
func (s *stage) tell(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	f, err := os.CreateTemp("", "cnmsql-bench-*.txt")
	if err != nil {
		return err
	}
	s.bed.Tell(ctx, key, 2000, f)
	say("what is known of the cluster is in %s", f.Name())
	return f.Close()
}

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/test/testbed"
)

// undo ends a fault that lasts.
type undo = func(context.Context) error

func nothing(context.Context) error { return nil }

// fault does something to an instance; what lasts is ended by what it returns.
type fault struct {
	name   string
	weight int
	do     func(context.Context, *soak, string) (undo, error)
}

var faults = []fault{
	{"mysqld killed", 6, func(ctx context.Context, s *soak, who string) (undo, error) {
		return nothing, s.signal(ctx, who, "mysqld", syscall.SIGKILL)
	}},
	{"mysqld hung", 3, func(ctx context.Context, s *soak, who string) (undo, error) {
		return s.stop(ctx, who, "mysqld")
	}},
	{"manager killed", 2, func(ctx context.Context, s *soak, who string) (undo, error) {
		return nothing, s.signal(ctx, who, "cnmsql", syscall.SIGKILL)
	}},
	{"Pod deleted", 2, func(ctx context.Context, s *soak, who string) (undo, error) {
		return nothing, s.deletePod(ctx, who)
	}},
	{"Pod deleted by force", 2, func(ctx context.Context, s *soak, who string) (undo, error) {
		return nothing, s.deletePod(ctx, who, client.GracePeriodSeconds(0))
	}},
	{"switchover", 3, switchover},
	{"operator killed", 2, func(ctx context.Context, s *soak, _ string) (undo, error) {
		_, err := s.bed.Kubectl(ctx, nil, "-n", testbed.OperatorNamespace, "delete", "pod", "--all", "--grace-period=0",
			"--force", "--wait=false")
		return nothing, err
	}},
	{"node partitioned", 3, func(ctx context.Context, s *soak, who string) (undo, error) {
		return s.onNode(ctx, who, "partition", "heal")
	}},
	{"node cut off from nodes", 2, cut("nodes", "both")},
	{"node cut off from nodes, outgoing", 2, cut("nodes", "out")},
	{"node cut off from nodes, incoming", 2, cut("nodes", "in")},
	{"node cut off from the API server", 2, cut("api", "both")},
	{"node powered off", 2, func(ctx context.Context, s *soak, who string) (undo, error) {
		return s.onNode(ctx, who, "poweroff", "poweron")
	}},
}

// drawer draws faults and whom they hit.
type drawer struct {
	s      *soak
	random *rand.Rand
}

// draw draws one fault and lets it happen. One that cannot happen now, for its victim is
// away already, is no error.
func (d *drawer) draw(ctx context.Context) undo {
	total := 0
	for _, f := range faults {
		total += f.weight
	}
	at, hitsPrimary, which := d.random.IntN(total), d.random.IntN(3) > 0, d.random.IntN(2)
	i := slices.IndexFunc(faults, func(f fault) bool { at -= f.weight; return at < 0 })
	f := faults[i]
	c, err := d.s.bed.Get(ctx, key)
	if err != nil {
		return nothing
	}
	who := c.Status.CurrentPrimary
	if replicas := slices.DeleteFunc(c.Status.InstanceNames, func(n string) bool { return n == who }); !hitsPrimary &&
		len(replicas) > which {
		who = replicas[which]
	}
	role := map[bool]string{true: "primary", false: "replica"}[who == c.Status.CurrentPrimary]
	back, err := f.do(ctx, d.s, who)
	fmt.Printf("%s  %s (%s, %s)\n", time.Now().UTC().Format("15:04:05"), f.name, who, role)
	if err != nil {
		fmt.Println("  could not be done:", err)
	}
	d.s.drawn[f.name+", "+role]++
	if back == nil {
		return nothing
	}
	return back
}

func (s *soak) signal(ctx context.Context, who, program string, sig syscall.Signal) error {
	pid, err := s.bed.PID(ctx, key, who, program)
	if err != nil {
		return err
	}
	return syscall.Kill(pid, sig)
}

// stop stops a program until it is undone; it may be dead by then.
func (s *soak) stop(ctx context.Context, who, program string) (undo, error) {
	pid, err := s.bed.PID(ctx, key, who, program)
	if err != nil {
		return nothing, err
	}
	return func(context.Context) error { _ = syscall.Kill(pid, syscall.SIGCONT); return nil },
		syscall.Kill(pid, syscall.SIGSTOP)
}

func (s *soak) deletePod(ctx context.Context, who string, opts ...client.DeleteOption) error {
	return s.bed.Client.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: who}},
		opts...)
}

func switchover(ctx context.Context, s *soak, who string) (undo, error) {
	c, err := s.bed.Get(ctx, key)
	if err != nil {
		return nothing, err
	}
	if who == c.Status.CurrentPrimary {
		who = c.Status.InstanceNames[(slices.Index(c.Status.InstanceNames, who)+1)%len(c.Status.InstanceNames)]
	}
	_, err = s.bed.Kubectl(ctx, nil, "-n", key.Namespace, "patch", "cluster", key.Name,
		"--subresource=status", "--type=merge",
		"-p", fmt.Sprintf(`{"status":{"targetPrimary":%q}}`, who))
	return nothing, err
}

func cut(from, way string) func(context.Context, *soak, string) (undo, error) {
	return func(ctx context.Context, s *soak, who string) (undo, error) {
		return s.onNode(ctx, who, "partition", "heal", "--from", from, "--direction", way)
	}
}

// onNode runs a command of the local Kubernetes on an instance's node, and another to
// take it back.
func (s *soak) onNode(ctx context.Context, who, verb, back string, args ...string) (undo, error) {
	var pod corev1.Pod
	if err := s.bed.Client.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: who}, &pod); err != nil {
		return nothing, err
	}
	node := pod.Spec.NodeName
	if node == "" {
		return nothing, fmt.Errorf("%s is on no node", who)
	}
	if _, err := s.bed.Localkube(ctx, append([]string{verb, node}, args...)...); err != nil {
		return nothing, err
	}
	return func(ctx context.Context) error {
		_, err := s.bed.Localkube(ctx, back, node)
		return err
	}, nil
}

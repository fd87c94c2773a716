package main

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fault is one thing that happens to a primary.
type fault struct {
	name, title string
	// do makes it happen to the primary and returns when it had: an earlier write may
	// have been acknowledged before it.
	do func(ctx context.Context, s *stage, primary *corev1.Pod) (time.Time, error)
	// undo brings a lost node back; nil where there is nothing to undo.
	undo func(ctx context.Context, s *stage, node string) error
	// withOperator: the leading operator is on the primary's node.
	withOperator bool
	// hold is how long a lost node stays lost at least; without it, until writes go on.
	hold time.Duration
	// named: it is done only when -only names it, for it takes long.
	named bool
}

// untilItFencesItself is longer than a primary that hears nobody stays writable, and its
// mysqld alive.
const untilItFencesItself = 25 * time.Second

var faults = []fault{
	{name: "killed", title: "mysqld killed", do: send(syscall.SIGKILL)},
	{name: "pod-deleted", title: "Pod deleted", do: deletePod()},
	{name: "pod-force-deleted", title: "Pod force-deleted", do: deletePod(client.GracePeriodSeconds(0))},
	{name: "hung", title: "mysqld hung (SIGSTOP)", do: send(syscall.SIGSTOP)},
	{name: "partitioned", title: "node partitioned", do: nodeFault("partition"), undo: nodeBack("heal")},
	{name: "powered-off", title: "node powered off", do: nodeFault("poweroff"), undo: nodeBack("poweron")},
	{name: "operator-partitioned", title: "node partitioned, with the leading operator", do: nodeFault("partition"),
		undo: nodeBack("heal"), withOperator: true},
	{name: "operator-powered-off", title: "node powered off, with the leading operator", do: nodeFault("poweroff"),
		undo: nodeBack("poweron"), withOperator: true},
	{name: "long-partitioned", title: "node partitioned for 25 s", do: nodeFault("partition"), undo: nodeBack("heal"),
		hold: untilItFencesItself, named: true},
	{name: "long-powered-off", title: "node powered off for 25 s", do: nodeFault("poweroff"), undo: nodeBack("poweron"),
		hold: untilItFencesItself, named: true},
	{name: "switchover", title: "planned switchover", do: switchOver},
}

// durability by its name in the table, with its topology and what stands in the
// Cluster for it.
type durability struct{ name, topology, spec string }

var durabilities = []durability{
	{"async", "replication", ""},
	{"semi-sync", "replication", "  mysql: {semiSync: {enabled: true, dataDurability: preferred}}\n"},
	{"quorum", "replication", "  mysql: {semiSync: {enabled: true, dataDurability: quorum}}\n"},
	{"group", "groupReplication", "  replication: {mode: groupReplication}\n"},
}

func orderOf(name string) int {
	return slices.IndexFunc(faults, func(f fault) bool { return f.name == name })
}

func durabilityOrder(name string) int {
	return slices.IndexFunc(durabilities, func(d durability) bool { return d.name == name })
}

func send(sig syscall.Signal) func(context.Context, *stage, *corev1.Pod) (time.Time, error) {
	return func(ctx context.Context, s *stage, primary *corev1.Pod) (time.Time, error) {
		return s.bed.SignalMysqld(ctx, key, primary.Name, sig)
	}
}

func deletePod(how ...client.DeleteOption) func(context.Context, *stage, *corev1.Pod) (time.Time, error) {
	return func(ctx context.Context, s *stage, primary *corev1.Pod) (time.Time, error) {
		at := time.Now()
		return at, s.bed.Client.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace,
			Name: primary.Name}}, how...)
	}
}

func nodeFault(verb string) func(context.Context, *stage, *corev1.Pod) (time.Time, error) {
	return func(ctx context.Context, s *stage, primary *corev1.Pod) (time.Time, error) {
		at := time.Now()
		_, err := s.bed.Localkube(ctx, verb, primary.Spec.NodeName)
		return at, err
	}
}

func nodeBack(verb string) func(context.Context, *stage, string) error {
	return func(ctx context.Context, s *stage, node string) error {
		_, err := s.bed.Localkube(ctx, verb, node)
		return err
	}
}

// switchOver asks the way the plugin does.
func switchOver(ctx context.Context, s *stage, primary *corev1.Pod) (time.Time, error) {
	c, err := s.bed.Get(ctx, key)
	if err != nil {
		return time.Time{}, err
	}
	for _, name := range c.Status.InstanceNames {
		if name != primary.Name {
			at := time.Now()
			return at, s.switchTo(ctx, name)
		}
	}
	return time.Time{}, fmt.Errorf("there is no replica to switch to")
}

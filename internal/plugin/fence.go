package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/observation"
)

// requestLimit is how long a request is followed that the operator answers at once.
const requestLimit = 30 * time.Second

func fenceCommand(k *kube) *cobra.Command {
	cmd := &cobra.Command{Use: "fence",
		Short: "Take an instance out of service without touching its data, or bring it back", Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			return fmt.Errorf("fence %s is not known: kubectl cnmsql fence on CLUSTER INSTANCE stops an instance's "+
				"mysqld (of a group: has it leave the group), fence off CLUSTER INSTANCE brings it back",
				strings.Join(args[:min(len(args), 1)], ""))
		}}
	cmd.AddCommand(
		fenceSwitch(k, "on", "Stop an instance's mysqld (of a group: have it leave the group) and take it out of "+
			"every Service; its data is kept", true),
		fenceSwitch(k, "off", "Start a fenced instance's mysqld again, or have it join its group", false))
	return cmd
}

func fenceSwitch(k *kube, use, short string, on bool) *cobra.Command {
	var yes bool
	var timeout time.Duration
	cmd := &cobra.Command{Use: use + " CLUSTER INSTANCE", Short: short, Args: exactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := k.open()
			if err != nil {
				return err
			}
			f := &fencer{caller: newCaller(cmd, s, args[0], yes), on: on}
			return f.fence(cmd.Context(), args[1], timeout)
		}}
	cmd.Flags().DurationVar(&timeout, "timeout", requestLimit, "how long to wait for the operator; the request "+
		"itself stays")
	if on {
		cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation when the instance is the primary")
	}
	return cmd
}

// fencer has an instance fenced, or brought back.
type fencer struct {
	caller
	on bool
}

func (f *fencer) fence(ctx context.Context, instance string, timeout time.Duration) error {
	c, err := getCluster(ctx, f.client, f.key)
	if err != nil {
		return err
	}
	name, err := instanceNamed(c, instance)
	if err != nil {
		return err
	}
	pod, err := f.pod(ctx, name)
	if err != nil {
		return err
	}
	listed := f.isDone(&c.Status, name)
	if observation.PodFacts(pod, observation.Wanted{}).FencingRequested == f.on && listed {
		f.say("%s is %s already; nothing was done.", name, f.word())
		return nil
	}
	if err := f.warn(ctx, c, name); err != nil {
		return err
	}
	if err := f.write(ctx, pod, f.on); err != nil {
		return err
	}
	f.say("Asked for fencing of %s to be turned %s; waiting until the operator shows it in status.fencedInstances.",
		name, f.use())
	return f.await(ctx, c, pod, timeout)
}

func (f *fencer) word() string {
	if f.on {
		return "fenced"
	}
	return "not fenced"
}

func (f *fencer) isDone(s *v1alpha1.ClusterStatus, name string) bool {
	return slices.Contains(s.FencedInstances, name) == f.on
}

func (f *fencer) pod(ctx context.Context, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := f.client.Get(ctx, types.NamespacedName{Namespace: f.key.Namespace, Name: name}, pod)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%s has no Pod at the moment, and the request is an annotation of its Pod: wait until "+
			"it has one (kubectl cnmsql status %s -n %s), and repeat", name, f.key.Name, f.key.Namespace)
	case err != nil:
		return nil, fmt.Errorf("reading Pod %s: %w", name, err)
	}
	return pod, nil
}

// warn tells what fencing the primary does, and asks back.
func (f *fencer) warn(ctx context.Context, c *v1alpha1.Cluster, name string) error {
	if !f.on || holderOf(&c.Status) != name {
		return nil
	}
	words := topologyOf(c).fencing()
	f.say("%s is the primary of %s. %s", name, c.Name, words.primary)
	f.say("To take it out of service and keep writing, switch over first: kubectl cnmsql promote %s INSTANCE -n %s",
		c.Name, c.Namespace)
	if words.question == "" {
		return nil
	}
	return f.confirm(ctx, "yes", fmt.Sprintf(words.question, c.Name))
}

func (f *fencer) write(ctx context.Context, pod *corev1.Pod, on bool) error {
	var value any
	if on {
		value = "on"
	}
	err := f.annotate(ctx, pod.DeepCopy(), "", map[string]any{v1alpha1.AnnotationFencing: value})
	if err != nil {
		return fmt.Errorf("writing the annotation %s of Pod %s: %w (the right to patch pods is needed)",
			v1alpha1.AnnotationFencing, pod.Name, err)
	}
	return nil
}

func (f *fencer) await(ctx context.Context, c *v1alpha1.Cluster, pod *corev1.Pod, timeout time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	name, words := pod.Name, topologyOf(c).fencing()
	last, err := f.follow(limited, c, progress, func(ctx context.Context, now *v1alpha1.Cluster) error {
		switch {
		case f.isDone(&now.Status, name):
			return nil
		case f.on && isRefusedFence(now, words, name):
			return errRefused
		}
		return errPending
	})
	switch {
	// A refusal that names another instance stands before that of this one.
	case errors.Is(err, errRefused), errors.Is(err, errPending) && f.on && isRefusedFence(last, words, ""):
		return f.takeBack(ctx, pod, last)
	case errors.Is(err, errPending):
		return fmt.Errorf("after %s status.fencedInstances does not say that %s is %s; last: %s. The request stays "+
			"on the Pod and counts when the operator sees it: see that it runs (%s); to take the request back: "+
			"kubectl cnmsql fence %s %s %s -n %s",
			timeout, name, f.word(), progress(&last.Status), findOperator, f.opposite(), f.key.Name,
			name, f.key.Namespace)
	case err != nil:
		return err
	case f.on:
		f.say("%s is fenced: %s. To bring it back: kubectl cnmsql fence off %s %s -n %s", name, words.on, f.key.Name,
			name, f.key.Namespace)
	default:
		f.say("%s is not fenced any more: %s. To see it come back: kubectl cnmsql status %s -n %s", name, words.off,
			f.key.Name, f.key.Namespace)
	}
	return nil
}

// isRefusedFence reports whether the operator refuses to fence an instance; with "" any.
func isRefusedFence(c *v1alpha1.Cluster, words fenceWords, instance string) bool {
	b := c.Status.Blocked
	return b != nil && words.refusal != "" && b.Reason == string(words.refusal) &&
		(instance == "" || b.Subject == instance)
}

// takeBack takes the request back and returns an error that says why the operator refused it. Left
// there, a request that is refused now would be carried out whenever the others are back, when
// nobody expects it any more.
func (f *fencer) takeBack(ctx context.Context, pod *corev1.Pod, c *v1alpha1.Cluster) error {
	why := c.Status.Blocked.Reason + ": " + c.Status.Blocked.Message
	if err := f.write(ctx, pod, false); err != nil {
		return fmt.Errorf("the operator refused: %s; and the request could not be taken back: %w", why, err)
	}
	return fmt.Errorf("the operator refused: %s. The request was taken back", why)
}

func (f *fencer) use() string {
	if f.on {
		return "on"
	}
	return "off"
}

func (f *fencer) opposite() string { return (&fencer{on: !f.on}).use() }

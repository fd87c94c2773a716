package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
)

func promoteCommand(k *kube) *cobra.Command {
	var noWait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "promote CLUSTER INSTANCE",
		Short: "Ask for a planned switchover to an instance (its name or number), and follow it",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := k.open()
			if err != nil {
				return err
			}
			p := &promoter{client: s.client, out: cmd.OutOrStdout(), now: time.Now,
				key: types.NamespacedName{Namespace: s.namespace, Name: args[0]}}
			if noWait {
				_, err := p.request(cmd.Context(), args[1])
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return p.promote(ctx, args[1])
		},
	}
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "return when the request is written")
	cmd.Flags().DurationVar(&timeout, "timeout", 2*time.Minute, "how long to follow; the request itself stays")
	return cmd
}

// promoter asks for a switchover and follows what the operator makes of it.
type promoter struct {
	client client.WithWatch
	out    io.Writer
	now    func() time.Time
	key    types.NamespacedName
}

// wish is a request that was written.
type wish struct {
	target  string
	cluster *v1alpha1.Cluster
	// told are the events that were there before.
	told map[string]bool
	// nothing: there is nothing to wait for.
	nothing bool
}

func (p *promoter) say(format string, args ...any) { _, _ = fmt.Fprintf(p.out, format+"\n", args...) }

func (p *promoter) promote(ctx context.Context, instance string) error {
	w, err := p.request(ctx, instance)
	if err != nil || w.nothing {
		return err
	}
	return p.follow(ctx, w)
}

// request writes the wish into the Cluster's status, where the operator looks.
func (p *promoter) request(ctx context.Context, instance string) (*wish, error) {
	c, err := getCluster(ctx, p.client, p.key)
	if err != nil {
		return nil, err
	}
	target, err := instanceNamed(c, instance)
	if err != nil {
		return nil, err
	}
	if c.DeletionTimestamp != nil {
		return nil, fmt.Errorf("cluster %s is being deleted; nothing is promoted in it", c.Name)
	}
	if isSettledOn(&c.Status, target) {
		p.say("%s is the primary of %s already.", target, c.Name)
		return &wish{target: target, cluster: c, nothing: true}, nil
	}
	if c.Status.CurrentPrimary == "" {
		return nil, fmt.Errorf("cluster %s has no primary yet (%s); the first one is chosen by the operator", c.Name, orElse(c.Status.PhaseReason, "the operator has not looked at it"))
	}
	for _, warning := range doubts(&c.Status, target) {
		p.say("Warning: %s", warning)
	}
	told := map[string]bool{}
	for _, e := range listEvents(ctx, p.client, c) {
		told[eventKey(&e)] = true
	}
	if err := p.write(ctx, c, target); err != nil {
		return nil, err
	}
	p.say("Asked for %s as primary of %s, after %s.", target, c.Name, c.Status.CurrentPrimary)
	return &wish{target: target, cluster: c, told: told}, nil
}

// instanceNamed finds an instance by its name or number.
func instanceNamed(c *v1alpha1.Cluster, instance string) (string, error) {
	name := instance
	if n, err := strconv.Atoi(instance); err == nil {
		name = resources.InstanceName(c.Name, n)
	}
	if !slices.Contains(c.Status.InstanceNames, name) {
		return "", fmt.Errorf("cluster %s has no instance %s; it has: %s", c.Name, name, orElse(strings.Join(c.Status.InstanceNames, ", "), "none yet"))
	}
	return name, nil
}

// isSettledOn: the instance is primary, and nobody wishes or does anything else.
func isSettledOn(s *v1alpha1.ClusterStatus, target string) bool {
	granted := s.Promotion == nil || s.Promotion.Instance == target
	return s.CurrentPrimary == target && granted && s.Operation == nil && (s.TargetPrimary == target || s.TargetPrimary == "")
}

// doubts are told beforehand; the operator has the last word, for it knows more.
func doubts(s *v1alpha1.ClusterStatus, target string) []string {
	var out []string
	if slices.Contains(s.DivergedInstances, target) {
		out = append(out, target+" holds transactions that the primary does not have; the operator will refuse it")
	}
	if slices.Contains(s.ReplicationBrokenInstances, target) {
		out = append(out, "replication of "+target+" is broken; the operator will refuse it until that is mended")
	}
	for _, in := range s.InstancesReported {
		if in.Name == target && (in.State != string(core.Running) || !in.Ready) {
			out = append(out, fmt.Sprintf("%s is not ready (state %s) %s", target, in.State, in.Message))
		}
	}
	if op := s.Operation; op != nil {
		out = append(out, fmt.Sprintf("a %s from %s is in progress at step %s; this request counts when it has ended, or not at all", op.Kind, op.From, op.Step))
	}
	if s.Phase == string(core.PhaseBlocked) {
		out = append(out, "the cluster is blocked: "+s.PhaseReason)
	}
	return out
}

func (p *promoter) write(ctx context.Context, c *v1alpha1.Cluster, target string) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"targetPrimary":          target,
		"targetPrimaryTimestamp": metav1.NewMicroTime(p.now().UTC().Truncate(time.Microsecond)),
	}})
	if err != nil {
		return err
	}
	if err := p.client.Status().Patch(ctx, c, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("writing status.targetPrimary of Cluster %s: %w (the right to patch clusters/status is needed)", c.Name, explain(err))
	}
	return nil
}

// errPending tells that a request is neither carried out nor refused.
var errPending = errors.New("no answer yet")

package plugin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	"cnmsql.co/internal/declared"
	"cnmsql.co/internal/observation"
	"cnmsql.co/internal/resources"
)

func promoteCommand(k *kube) *cobra.Command {
	var noWait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "promote CLUSTER INSTANCE",
		Short: "Ask for a planned switchover to an instance (its name or number), and follow it",
		Args:  exactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := k.open()
			if err != nil {
				return err
			}
			p := &promoter{newCaller(cmd, s, args[0], false)}
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
type promoter struct{ caller }

// wish is a request that was written.
type wish struct {
	target  string
	cluster *v1alpha1.Cluster
	// told are the events that were there before.
	told told
	// nothing: there is nothing to wait for.
	nothing bool
}

func (p *promoter) promote(ctx context.Context, instance string) error {
	w, err := p.request(ctx, instance)
	if err != nil || w.nothing {
		return err
	}
	began := p.now()
	last, err := p.follow(ctx, w.cluster, progress, func(ctx context.Context, c *v1alpha1.Cluster) error {
		w.cluster = c
		return p.verdict(ctx, w, began)
	})
	if errors.Is(err, errPending) {
		w.cluster = last
		return p.unanswered(w, p.now().Sub(began))
	}
	return err
}

// verdict is nil when the wish is fulfilled, errPending while it may be.
func (p *promoter) verdict(ctx context.Context, w *wish, began time.Time) error {
	s := &w.cluster.Status
	switch {
	case isSettledOn(s, w.target):
		p.say("%s is the primary of %s (epoch %d), %s after the request.", w.target, p.key.Name, s.PrimaryEpoch,
			p.now().Sub(began).Round(time.Millisecond))
		return nil
	case s.Operation == nil && s.TargetPrimary != w.target:
		why := fmt.Sprintf("status.targetPrimary was set to %s (%s)", cmp.Or(s.TargetPrimary, "nobody"),
			inNamespace(p.key.Namespace, s.PhaseReason))
		if e := p.newEvent(ctx, w.cluster, w.told, isWarning); e != nil {
			why = e.Reason + ": " + e.Note
		}
		return fmt.Errorf("%s was not promoted: %s; the primary is %s", w.target, why, s.CurrentPrimary)
	default:
		return errPending
	}
}

func (p *promoter) unanswered(w *wish, after time.Duration) error {
	s := &w.cluster.Status
	if op := s.Operation; op != nil && op.Kind == string(core.OperationFailover) &&
		op.Step == string(core.StepPromote) {
		return fmt.Errorf("%s is not the primary after %s: a failover to %s is in progress, and the request counts "+
			"when that has ended; last: %s. If it does not continue, promote %s instead; the command first shows "+
			"what may be lost: kubectl cnmsql failover %s --to %s --accept-data-loss -n %s; to follow: kubectl "+
			"cnmsql status %s -n %s", w.target, after.Round(100*time.Millisecond), op.To,
			inNamespace(p.key.Namespace, progress(s)), w.target, p.key.Name, w.target, p.key.Namespace, p.key.Name,
			p.key.Namespace)
	}
	return fmt.Errorf("%s is not the primary after %s; last: %s. The request stays in status.targetPrimary; to "+
		"follow: kubectl cnmsql status %s -n %s; to withdraw it: kubectl cnmsql promote %s %s -n %s (that counts "+
		"until %s takes writes); if nothing happened at all, see that the operator runs: %s",
		w.target, after.Round(100*time.Millisecond), progress(s), p.key.Name, p.key.Namespace, p.key.Name,
		s.CurrentPrimary, p.key.Namespace, w.target, findOperator)
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
		return nil, fmt.Errorf("cluster %s has no primary yet (%s); the first one is chosen by the operator", c.Name,
			cmp.Or(c.Status.PhaseReason, "the operator has not looked at it"))
	}
	for _, warning := range append(doubts(c, target), preferenceDoubts(c, target)...) {
		p.say("Warning: %s", warning)
	}
	told := p.toldSoFar(ctx, c)
	if err := p.write(ctx, c, target); err != nil {
		return nil, err
	}
	p.say("Asked for %s as primary of %s, after %s.", target, c.Name, c.Status.CurrentPrimary)
	return &wish{target: target, cluster: c, told: told}, nil
}

// instanceNamed finds an instance by its name or number.
func instanceNamed(c *v1alpha1.Cluster, instance string) (string, error) {
	name := instance
	if n, err := strconv.Atoi(instance); err == nil && n > 0 {
		name = resources.InstanceName(c.Name, n)
	}
	if !slices.Contains(c.Status.InstanceNames, name) {
		return "", fmt.Errorf("cluster %s has no instance %s; it has: %s", c.Name, name,
			cmp.Or(strings.Join(c.Status.InstanceNames, ", "), "none yet"))
	}
	return name, nil
}

// isSettledOn reports whether the instance is primary, and nobody wishes or does anything else.
func isSettledOn(s *v1alpha1.ClusterStatus, target string) bool {
	granted := s.Promotion == nil || s.Promotion.Instance == target
	return s.CurrentPrimary == target && granted && s.Operation == nil &&
		(s.TargetPrimary == target || s.TargetPrimary == "")
}

// doubts are told beforehand; the operator has the last word, for it knows more.
func doubts(c *v1alpha1.Cluster, target string) []string {
	s := &c.Status
	var out []string
	if slices.Contains(s.DivergedInstances, target) {
		out = append(out, target+" holds transactions that the primary does not have; the operator will refuse it")
	}
	if slices.Contains(s.ReplicationBrokenInstances, target) {
		out = append(out, "replication of "+target+" is broken; the operator will refuse it until that is mended")
	}
	if g := s.GroupReplication; g != nil {
		out = append(out, groupDoubts(g, target)...)
	}
	for _, in := range s.InstancesReported {
		if in.Name == target && (in.State != string(core.Running) || !in.Ready) {
			out = append(out, fmt.Sprintf("%s is not ready (state %s) %s", target, in.State, in.Message))
		}
	}
	if op := s.Operation; op != nil {
		out = append(out, fmt.Sprintf("a %s from %s is in progress at step %s; this request takes effect after that, "+
			"or not at all", op.Kind, op.From, op.Step))
	}
	if s.Phase == string(core.PhaseBlocked) {
		out = append(out, "the cluster is blocked: "+inNamespace(c.Namespace, s.PhaseReason))
	}
	return out
}

// preferenceDoubts tells that another takes over again, which is preferred to the target.
func preferenceDoubts(c *v1alpha1.Cluster, target string) []string {
	policy := observation.Policy(&c.Spec)
	if declared.Topology(&c.Spec).ElectsByItself() || policy.StabilityWindow > 0 {
		return nil
	}
	for _, name := range policy.Preferred {
		switch {
		case name == target:
			return nil
		case slices.Contains(c.Status.InstanceNames, name):
			return []string{fmt.Sprintf("%s is preferred to it (spec.failoverPolicy.preferredPrimary), and without a "+
				"primaryStabilityWindow takes over again within seconds where nothing hinders it", name)}
		}
	}
	return nil
}

func groupDoubts(g *v1alpha1.GroupReplicationStatus, target string) []string {
	var out []string
	if !g.HasQuorum {
		out = append(out, "no majority of the group is seen; this request counts when it is back")
	}
	for _, m := range g.Members {
		if m.Instance == target && m.State != string(core.MemberOnline) {
			out = append(out, fmt.Sprintf("%s is not online in the group (%s); the operator will refuse it", target,
				m.State))
		}
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
		return fmt.Errorf(
			"writing status.targetPrimary of Cluster %s: %w (the right to patch clusters/status is needed)",
			c.Name, explain(err))
	}
	return nil
}

package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
)

func failoverCommand(k *kube) *cobra.Command {
	var to string
	var accept, yes bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "failover CLUSTER --to INSTANCE --accept-data-loss",
		Short: "Promote an instance although nobody can prove that no write is lost: the last resort",
		Long: `Promote an instance although nobody can prove that the former primary takes no
writes any more, and that no acknowledged write is lost. For a cluster in which nobody
takes writes, and which will not go on by itself. To change a primary that works, use promote.`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := k.open()
			if err != nil {
				return err
			}
			if err := bothFlags(args[0], s.namespace, to, accept); err != nil {
				return err
			}
			o := &overrider{newCaller(cmd, s, args[0], yes)}
			return o.failOver(cmd.Context(), to, timeout)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "the instance to promote, by name or number")
	cmd.Flags().BoolVar(&accept, "accept-data-loss", false, "writes that the instance does not hold may be lost")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	cmd.Flags().DurationVar(&timeout, "timeout", 2*time.Minute, "how long to follow; the request itself stays")
	return cmd
}

func bothFlags(cluster, namespace, to string, accept bool) error {
	if n, err := strconv.Atoi(to); err == nil {
		to = resources.InstanceName(cluster, n)
	}
	switch {
	case to == "":
		return fmt.Errorf("name the instance to promote with --to; kubectl cnmsql status %s -n %s shows which are "+
			"there and what they lack", cluster, namespace)
	case !accept:
		return fmt.Errorf("this promotes %s without a proof that the former primary takes no writes, and what %s "+
			"does not hold is lost: if that is acceptable, add --accept-data-loss. "+
			"kubectl cnmsql status %s -n %s says what the operator waits for", to, to, cluster, namespace)
	}
	return nil
}

// overrider has an instance promoted on a human's word.
type overrider struct{ caller }

func (o *overrider) failOver(ctx context.Context, instance string, timeout time.Duration) error {
	c, err := getCluster(ctx, o.client, o.key)
	if err != nil {
		return err
	}
	to, err := instanceNamed(c, instance)
	if err != nil {
		return err
	}
	said := o.ask.all(ctx, namesToAsk(c, readPods(ctx, o.client, c)))
	if err := said.mayAsk("telling whether another takes writes, and what is lost,"); err != nil {
		return err
	}
	if err := mayOverride(c, to, said); err != nil {
		return err
	}
	if err := mayOverrideNow(c, to, said); err != nil {
		return err
	}
	o.tell(c, to, said)
	if err := o.confirm(ctx, c.Name, fmt.Sprintf("Type the name of the cluster (%s) to promote %s:",
		c.Name, to)); err != nil {
		return err
	}
	before := o.toldSoFar(ctx, c)
	epoch := c.Status.PrimaryEpoch
	asked := c.DeepCopy() // becomes the Cluster with the request, from where it is followed
	err = o.annotate(ctx, asked, "", map[string]any{v1alpha1.AnnotationAcceptLoss: fmt.Sprintf("%s@%d", to, epoch)})
	if err != nil {
		return fmt.Errorf("writing the annotation %s of Cluster %s: %w (the right to patch clusters is needed)",
			v1alpha1.AnnotationAcceptLoss, c.Name, explain(err))
	}
	o.say("Requested the promotion of %s, whatever is lost, after epoch %d.", to, epoch)
	return o.await(ctx, asked, to, epoch, before, timeout)
}

// mayOverride refuses what the operator would refuse, by what it says itself.
func mayOverride(c *v1alpha1.Cluster, to string, said words) error {
	s := &c.Status
	if c.DeletionTimestamp != nil {
		return fmt.Errorf("cluster %s is being deleted; nothing is promoted in it", c.Name)
	}
	if err := topologyOf(c).overridable(c, to); err != nil {
		return err
	}
	switch {
	case s.Promotion == nil:
		return fmt.Errorf("cluster %s has no primary yet (%s); the first one is chosen by the operator", c.Name,
			cmp.Or(s.PhaseReason, "the operator has not looked at it"))
	case core.Diagnosis(s.Diagnosis).TakesWrites() && !said[s.Promotion.Instance].Report.Known():
		return fmt.Errorf("nothing was done: the operator last reported that the primary %s takes writes (%s), but "+
			"%s does not answer from here (%s). If the operator does not run, that report is old, and a request "+
			"would have no effect. Check that it runs (%s), wait half a minute, and look again: kubectl cnmsql "+
			"status %s -n %s",
			s.Promotion.Instance, s.Diagnosis, s.Promotion.Instance, cmp.Or(said[s.Promotion.Instance].Problem,
				"it was not asked"), findOperator, c.Name, c.Namespace)
	case s.Diagnosis == string(core.PrimaryFollows) && !(takesOver(c) && to == s.Promotion.Instance):
		return fmt.Errorf("nothing was done: the primary %s of %s follows %s, and no instance takes writes, so there "+
			"is nothing to override. To take over from %[3]s: set spec.replica.enabled: false; to have another "+
			"instance follow it: kubectl cnmsql promote %s %s -n %s", s.Promotion.Instance, c.Name,
			s.Promotion.Follows, c.Name, to, c.Namespace)
	case s.Diagnosis == string(core.PrimaryLostTransactions):
		return fmt.Errorf("the primary %s of %s takes writes, and has lost transactions that replicas hold. Nobody is "+
			"promoted before you have decided which copy is right, and nothing was done. Stop the application now; "+
			"then read what to do: kubectl cnmsql status %s -n %s",
			s.Promotion.Instance, c.Name, c.Name, c.Namespace)
	case core.Diagnosis(s.Diagnosis).TakesWrites():
		return fmt.Errorf("the primary %s of %s takes writes (%s), so that there is nothing to override and nothing "+
			"was done. To make %s primary without a loss: kubectl cnmsql promote %s %s -n %s",
			s.Promotion.Instance, c.Name, s.Diagnosis, to, c.Name, to, c.Namespace)
	}
	return nil
}

// mayOverrideNow refuses by what instances say themselves: two primaries for
// certain, or an instance that cannot be promoted.
func mayOverrideNow(c *v1alpha1.Cluster, to string, said words) error {
	for name, w := range said {
		if r, known := w.Report.Get(); known && r.TakesWrites() && name != to {
			return fmt.Errorf("%s answers from here and TAKES WRITES in epoch %d, though the operator does not reach "+
				"it: clients are served, nobody has to be promoted, and nothing was done. Promoting %s would "+
				"certainly make two primaries. Fix the network between the operator and %s", name, r.WritableEpoch, to,
				name)
		}
	}
	r, known := said[to].Report.Get()
	if known && (r.State != core.Running || r.Data != core.DataPopulated || r.Server == nil) {
		return fmt.Errorf("%s cannot be promoted, and nothing was done: its mysqld does not serve the cluster's data "+
			"(%s). Fix that first, or choose another: kubectl cnmsql status %s -n %s", to,
			describeState(&r), c.Name, c.Namespace)
	}
	return nil
}

// tell is what whoever types the name of the cluster has to know.
func (o *overrider) tell(c *v1alpha1.Cluster, to string, said words) {
	s := &c.Status
	o.say("Cluster %s/%s: %s. %s", c.Namespace, c.Name, cmp.Or(s.Phase, "Unknown"),
		inNamespace(c.Namespace, s.PhaseReason))
	for _, line := range whoElseWrites(s, to, said) {
		o.say("%s", line)
	}
	for _, line := range whatIsLost(c, to, said) {
		o.say("  %s", line)
	}
}

// namesToAsk are the instances of the status, and those that have a Pod: a status that was set back does not
// name who came since.
func namesToAsk(c *v1alpha1.Cluster, pods map[string]*corev1.Pod) []string {
	names := slices.Clone(c.Status.InstanceNames)
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// isPast reports whether the status was set back: the operator says so, or an instance has seen a later one.
func isPast(s *v1alpha1.ClusterStatus, said words) bool {
	if s.Blocked != nil && s.Blocked.Reason == string(core.RefusalStatusRegressed) {
		return true
	}
	for _, w := range said {
		if w.Report.Is(func(r core.Report) bool { return r.HasSeenAfter(s.PrimaryEpoch) }) {
			return true
		}
	}
	return false
}

// whoWroteLast tells of a status that was set back that it does not say who was permitted to take writes last.
func whoWroteLast(s *v1alpha1.ClusterStatus, to string, said words) string {
	var silent []string
	for _, name := range slices.Sorted(maps.Keys(said)) {
		if name != to && !said[name].Report.Known() {
			silent = append(silent, name)
		}
	}
	text := fmt.Sprintf("Promoting %s. The status is outdated (epoch %d). Which instance took writes last is NOT "+
		"KNOWN", to,
		s.PrimaryEpoch)
	if len(silent) == 0 {
		return text + "; of the instances that answer from here, no other takes writes now."
	}
	return text + ": " + strings.Join(silent, ", ") + " did not answer, and may take writes now."
}

// whoElseWrites tells what is known of the one that was permitted to take writes last: whether
// two might. Nobody but it may, for whoever was permitted before had proved to be closed; but that holds
// only while the status is the last there was.
func whoElseWrites(s *v1alpha1.ClusterStatus, to string, said words) []string {
	former := s.Promotion.Instance
	if isPast(s, said) {
		return []string{whoWroteLast(s, to, said)}
	}
	if s.Promotion.Follows != "" && to == former {
		return []string{fmt.Sprintf("%s will take writes, and no longer follow %s (epoch %d).", to,
			s.Promotion.Follows, s.PrimaryEpoch)}
	}
	if to == former {
		return []string{fmt.Sprintf("Promoting %s again (epoch %d): it was promoted last, so no other instance takes "+
			"writes.", to, s.PrimaryEpoch)}
	}
	promoting := fmt.Sprintf("Promoting %s after %s (epoch %d)", to, former, s.PrimaryEpoch)
	switch r, known := said[former].Report.Get(); {
	case known && core.ForbidsWrites(r.NoWritesBelow, s.Promotion.Epoch):
		return []string{fmt.Sprintf(
			"%s. %s answers from here, takes no writes, and has promised to take none before epoch %d.", promoting,
			former, r.NoWritesBelow)}
	case known && !r.TakesWrites():
		return []string{fmt.Sprintf("%s. %s answers from here and takes no writes, but has not promised to take none "+
			"from now on.", promoting, former)}
	}
	return []string{
		fmt.Sprintf("%s, WITHOUT A PROOF that %s takes no writes.", promoting, former),
		fmt.Sprintf("If %s still runs somewhere, both take writes, and what it takes from now on is lost.", former),
	}
}

// await is over when the instance takes writes, or the request was taken off.
func (o *overrider) await(ctx context.Context, c *v1alpha1.Cluster, to string, epoch int64, before told,
	timeout time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	last, err := o.follow(limited, c, progress, func(_ context.Context, now *v1alpha1.Cluster) error {
		p := now.Status.Promotion
		_, asked := now.Annotations[v1alpha1.AnnotationAcceptLoss]
		switch {
		case p != nil && p.Epoch > epoch && now.Status.CurrentPrimary == p.Instance && now.Status.Operation == nil:
			return nil
		case !asked && p != nil && p.Epoch == epoch:
			return errRefused
		}
		return errPending
	})
	s := &last.Status
	switch {
	case errors.Is(err, errPending):
		return fmt.Errorf("%s does not take writes after %s; last: %s. To follow: kubectl cnmsql status %s -n %s; if "+
			"nothing happened at all, see that the operator runs: %s", to, timeout, progress(s), c.Name,
			c.Namespace, findOperator)
	case errors.Is(err, errRefused):
		why := inNamespace(c.Namespace, s.PhaseReason)
		if e := o.newEvent(ctx, last, before, because(core.RefusalOverride)); e != nil {
			why = e.Reason + ": " + e.Note
		}
		return fmt.Errorf("the operator refused: %s", why)
	case err != nil:
		return err
	case s.Promotion.Proof != string(core.ProofAcceptedLoss):
		o.say("%s is the primary of %s (epoch %d): it was promoted with a proof (%s) before the override was needed.",
			s.CurrentPrimary, c.Name, s.PrimaryEpoch, s.Promotion.Proof)
		return nil
	}
	if e := o.newEvent(ctx, last, before, because(core.ReasonOverride)); e != nil {
		o.say("%s: %s", e.Reason, e.Note)
	}
	o.say("%s is the primary of %s (epoch %d) and takes writes. Instances that hold what it lacks will be shown as "+
		"diverged: kubectl cnmsql status %s -n %s", s.CurrentPrimary, c.Name, s.PrimaryEpoch, c.Name, c.Namespace)
	return nil
}

// errRefused tells that the operator took a request off without carrying it out.
var errRefused = errors.New("refused")

package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/whatif"
)

func groupRecoverCommand(k *kube) *cobra.Command {
	var yes, accept bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "recover CLUSTER",
		Short: "Recover a group that lost its quorum, with the remaining members: the last resort",
		Long: `Recover a group that lost its quorum with the remaining members, or reboot it when no
member is left. The command shows which instances recover the group, what may be lost and
whether two groups may be the result, and asks for confirmation. The operator checks again,
and refuses when it cannot prove which instance holds everything, or when the instance that
would lead the group lacks what was seen in it: --accept-data-loss gives that up.`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := k.open()
			if err != nil {
				return err
			}
			r := &recoverer{caller: newCaller(cmd, s, args[0], yes), accept: accept}
			return r.recover(cmd.Context(), timeout)
		},
	}
	cmd.Flags().BoolVar(&accept, "accept-data-loss", false, "what was seen in the group, and the leading instance "+
		"lacks, may be lost")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	cmd.Flags().DurationVar(&timeout, "timeout", 2*time.Minute, "how long to follow; the request itself stays")
	return cmd
}

// recoverer has the quorum of a group recovered on a human's word.
type recoverer struct {
	caller
	// accept: what the one lacks that goes on may be lost.
	accept bool
}

func (r *recoverer) recover(ctx context.Context, timeout time.Duration) error {
	c, err := getCluster(ctx, r.client, r.key)
	if err != nil {
		return err
	}
	if err := mayRecover(c); err != nil {
		return err
	}
	o, notes, err := r.observe(ctx)
	if err != nil {
		return err
	}
	plan := r.plan(o)
	if plan.Refusal == core.RefusalQuorumPresent {
		return fmt.Errorf("nothing was done: %s. Its situation: kubectl cnmsql group status %s -n %s",
			plan.Because, c.Name, c.Namespace)
	}
	r.tell(c, &o, plan, notes)
	err = r.confirm(ctx, c.Name, fmt.Sprintf("Type the name of the cluster (%s) to ask for it:", c.Name))
	if err != nil {
		return err
	}
	before := r.toldSoFar(ctx, c)
	asked := c.DeepCopy() // becomes the Cluster with the request, from where it is followed
	err = r.annotate(ctx, asked, "", r.words(&o, plan))
	if err != nil {
		return fmt.Errorf("writing the annotation %s of Cluster %s: %w (the right to patch clusters is needed)",
			v1alpha1.AnnotationForceQuorum, c.Name, explain(err))
	}
	r.say("Asked for the quorum of %s to be recovered.", c.Name)
	return r.await(ctx, asked, asked.Status.PrimaryEpoch, before, timeout)
}

func (r *recoverer) plan(o core.Observation) whatif.Recovery {
	if r.accept {
		return whatif.RecoverAtALoss(o)
	}
	return whatif.Recover(o)
}

// words are the annotations by which it is asked for, and by which a loss is accepted.
func (r *recoverer) words(o *core.Observation, plan whatif.Recovery) map[string]any {
	word := r.now().UTC().Format(time.RFC3339)
	if view := whatif.RecoveryView(o); view != "" {
		word += "@" + view // the operator does not carry it out in another
	}
	out := map[string]any{v1alpha1.AnnotationForceQuorum: word}
	if r.accept && plan.Lead != "" {
		out[v1alpha1.AnnotationAcceptLoss] = fmt.Sprintf("%s@%d", plan.Lead, o.Cluster.Status.Epoch)
	}
	return out
}

func mayRecover(c *v1alpha1.Cluster) error {
	if err := mustBeGroup(c); err != nil {
		return err
	}
	g := c.Status.GroupReplication
	switch {
	case c.DeletionTimestamp != nil:
		return fmt.Errorf("cluster %s is being deleted; nothing is recovered in it", c.Name)
	case g == nil || !g.Bootstrapped:
		return fmt.Errorf("the group of cluster %s was not made yet (%s): it has no quorum to recover", c.Name,
			cmp.Or(c.Status.PhaseReason, "the operator has not looked at it"))
	}
	return nil
}

// tell is what whoever types the name of the cluster has to know.
func (r *recoverer) tell(c *v1alpha1.Cluster, o *core.Observation, plan whatif.Recovery, notes []string) {
	r.say("Cluster %s/%s: %s. %s", c.Namespace, c.Name, cmp.Or(c.Status.Phase, "Unknown"),
		inNamespace(c.Namespace, c.Status.PhaseReason))
	r.say("Its instances, as they answer from here:")
	for i := range o.Instances {
		r.say("  %s: %s", o.Instances[i].Name, memberSays(&o.Instances[i], r.silent[o.Instances[i].Name]))
	}
	for _, note := range notes {
		r.say("  ?: %s", note)
	}
	for _, line := range consequences(o, plan) {
		r.say("%s", inNamespace(c.Namespace, line))
	}
}

// memberSays is an instance's own word about itself in the group.
func memberSays(in *core.Instance, problem string) string {
	rep, known := in.Report.Get()
	if !known {
		return "NOT KNOWN: " + cmp.Or(problem, "no answer")
	}
	v := viewOrUnknown(&rep)
	if rep.Server == nil {
		return fmt.Sprintf("its mysqld does not answer (%s)", describeState(&rep))
	}
	holds := "holds " + count(int(rep.Server.Holds().Count()), "transaction")
	switch {
	case v.State != core.MemberOnline:
		return fmt.Sprintf("%s, in no group that works; %s", v.State, holds)
	case v.HasQuorum():
		return fmt.Sprintf("%s %s in a group with a quorum; %s", v.State, v.Role, holds)
	default:
		return fmt.Sprintf("%s %s, but has lost the majority; %s", v.State, v.Role, holds)
	}
}

// consequences of a recovery, with the names of all who are concerned.
func consequences(o *core.Observation, plan whatif.Recovery) []string {
	switch {
	case plan.Refusal != "" && plan.Lead != "":
		return []string{fmt.Sprintf("As things look from here, the operator would REFUSE (%s): %s.", plan.Refusal,
			plan.Because)}
	case plan.Refusal != "":
		return []string{
			fmt.Sprintf("As things look from here, the operator would REFUSE (%s): %s.", plan.Refusal, plan.Because),
			"It may see more, and checks for itself. Which instances would recover the group, and what would be " +
				"lost, is not known from here."}
	case plan.Because != "":
		return []string{"As things look from here, the operator does not carry it out at once: " + plan.Because + "."}
	case plan.Anew && len(plan.LeftOut) > 0:
		out := []string{fmt.Sprintf("No member is left in the group: %s, which holds all that the instances hold "+
			"that are not excluded, reboots it.", plan.Lead), whoReturns(plan)}
		return slices.Concat(out, lostWith(o, plan), splitBy(o, plan))
	case plan.Anew:
		return []string{
			fmt.Sprintf("No member is left in the group, and all instances answer: %s, which holds all that any of "+
				"them holds, reboots the group; the others join it.", plan.Lead),
			lostWithVolumes(o, plan) +
				" This cannot make two groups while every instance says that it is in none."}
	}
	return slices.Concat([]string{goesOn(plan) + ".", whoReturns(plan)}, lostWith(o, plan), splitBy(o, plan))
}

func whoReturns(plan whatif.Recovery) string {
	return "Excluded: " + cmp.Or(strings.Join(plan.LeftOut, ", "), "nobody") + ". An excluded instance that holds " +
		"nothing beyond " + strings.Join(plan.Members, ", ") +
		" joins again by itself. One that had received more is kept out as diverged, with its data, until you have " +
		"checked it and recreate it (reinit)."
}

func goesOn(plan whatif.Recovery) string {
	if plan.AsItIs {
		return "the group of " + strings.Join(plan.Members, ", ") + ", which has a quorum, is taken as the whole group"
	}
	if len(plan.Members) == 1 {
		return plan.Lead + " continues alone as the whole group"
	}
	return plan.Lead + " continues with " + strings.Join(plan.Members, ", ") + " as the whole group"
}

// lostWithVolumes returns the sentences about acknowledged writes that nobody holds any more: what was seen in
// the group, and what is lost with the volumes of members without data, for such a member may have been one of
// the majority that made a write acknowledged. An instance that is not heard is not named.
func lostWithVolumes(o *core.Observation, plan whatif.Recovery) string {
	var empty []string
	for i := range o.Instances {
		if rep, known := o.Instances[i].Report.Get(); known && rep.Data != core.DataPopulated {
			empty = append(empty, o.Instances[i].Name)
		}
	}
	var out []string
	if plan.Gap != "" {
		out = append(out, "LOST, as far as is known: "+plan.Gap+".")
	}
	if len(empty) > 0 {
		out = append(out, fmt.Sprintf("%s HAS NO DATA ANY MORE: acknowledged writes that it had received and %s has "+
			"not are lost.", strings.Join(empty, ", "), plan.Lead))
	}
	return cmp.Or(strings.Join(out, " "), "No loss is known.")
}

// lostWith tells what those who are left out hold and the new group does not.
func lostWith(o *core.Observation, plan whatif.Recovery) []string {
	lead := serverOf(o.Instance(plan.Lead))
	out := []string{"What may be lost:"}
	if plan.Gap != "" {
		out = []string{"What may be lost, and WHAT IS KNOWN TO BE:", "  " + plan.Gap + "."}
	}
	var silent []string
	for _, name := range plan.LeftOut {
		theirs := serverOf(o.Instance(name))
		if theirs == nil || lead == nil {
			silent = append(silent, name)
			continue
		}
		out = append(out, fmt.Sprintf("  %s holds, and %s does not: %s", name, plan.Lead,
			ofThese(theirs.Holds().Subtract(lead.Holds()))))
	}
	if len(silent) == 0 {
		return out
	}
	names := strings.Join(silent, ", ")
	if lead.View().Role == core.MemberPrimary && plan.Gap == "" {
		return append(out, fmt.Sprintf("  %s is the primary and holds all that it acknowledged. Lost is what %s "+
			"acknowledged since, if they elected a primary of their own: NOT KNOWN.", plan.Lead, names))
	}
	return append(out, fmt.Sprintf("  What %s hold is NOT KNOWN. A write is acknowledged when a majority has "+
		"received it: those that only they have received are lost.", names))
}

// twoGroups is what comes of a recovery beside a group that takes writes.
const twoGroups = "After this there are then two groups, and the writes of one of them are lost. First make sure " +
	"that their mysqld is dead: nodes switched off, or Pods that the kubelet reported as ended."

// splitBy tells whether those who are left out may be a group of their own. A lead that is in no group
// any more cannot tell of how many they would be the majority.
func splitBy(o *core.Observation, plan whatif.Recovery) []string {
	view := serverOf(o.Instance(plan.Lead)).View()
	var alive []string
	for _, name := range plan.LeftOut {
		isListed := len(view.Members) == 0 ||
			slices.ContainsFunc(view.Members, func(m core.ViewMember) bool { return core.InstanceIn(m.Host) == name })
		if isListed && !o.Instance(name).Report.Is(saysInNoGroup) {
			alive = append(alive, name)
		}
	}
	names := strings.Join(alive, ", ")
	switch {
	case len(alive) == 0:
		return []string{"Danger of a split brain: none is seen, because all excluded instances say that they are in " +
			"no group."}
	case len(view.Members) == 0:
		return []string{fmt.Sprintf("DANGER OF A SPLIT BRAIN: %s do not say that they are in no group. If they live, "+
			"they may be a group of their own, and TAKE WRITES NOW.", names), twoGroups}
	case 2*len(alive) > len(view.Members):
		return []string{
			fmt.Sprintf("DANGER OF A SPLIT BRAIN: if %s still run and are only unreachable, they are a majority (%d "+
				"of %d members) and TAKE WRITES NOW, with a primary of their own.", names, len(alive),
				len(view.Members)),
			twoGroups}
	default:
		return []string{fmt.Sprintf("Danger of a split brain: %s are no majority (%d of %d members) and cannot take "+
			"writes by themselves, unless their quorum is forced, too.", names, len(alive), len(view.Members))}
	}
}

// saysInNoGroup reports whether an instance says that it is in no group.
func saysInNoGroup(r core.Report) bool {
	v, tells := r.TellsView()
	return tells && v.State == core.MemberOffline
}

// await is over when the group has its quorum again, or the request was taken off.
func (r *recoverer) await(ctx context.Context, c *v1alpha1.Cluster, epoch int64, before told,
	timeout time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	last, err := r.follow(limited, c, progress, func(_ context.Context, now *v1alpha1.Cluster) error {
		_, asked := now.Annotations[v1alpha1.AnnotationForceQuorum]
		switch g := now.Status.GroupReplication; {
		case asked:
			return errPending
		case g != nil && g.HasQuorum && core.Diagnosis(now.Status.Diagnosis).TakesWrites():
			return nil
		case now.Status.PrimaryEpoch == epoch: // it grows when the word is carried out
			return errRefused
		}
		return errPending
	})
	s := &last.Status
	switch {
	case errors.Is(err, errPending):
		return r.unanswered(last, timeout)
	case errors.Is(err, errRefused):
		why := inNamespace(last.Namespace, s.PhaseReason)
		if e := r.newEvent(ctx, last, before, because(core.RecoveryRefusals()...)); e != nil {
			why = e.Reason + ": " + e.Note
		}
		return fmt.Errorf("the operator refused: %s", why)
	case err != nil:
		return err
	case s.PrimaryEpoch == epoch:
		r.say("The group of %s has its quorum again by itself; nothing was forced. %s is the primary.",
			last.Name, s.CurrentPrimary)
		return nil
	}
	if e := r.newEvent(ctx, last, before, because(core.ReasonQuorumForced, core.ReasonTotalOutage)); e != nil {
		r.say("%s: %s", e.Reason, e.Note)
	}
	r.say("The group of %s has its quorum again; %s is the primary. Check which instances come back, and whether one "+
		"holds what the group lacks: kubectl cnmsql group status %s -n %s -w", last.Name, s.CurrentPrimary,
		last.Name, last.Namespace)
	return nil
}

func (r *recoverer) unanswered(c *v1alpha1.Cluster, after time.Duration) error {
	if _, asked := c.Annotations[v1alpha1.AnnotationForceQuorum]; asked {
		return fmt.Errorf("the operator did not answer within %s; last: %s. THE REQUEST STAYS, and counts when the "+
			"operator sees it: check that it runs (%s). To take it back: kubectl annotate cluster %s -n %s %s-",
			after, progress(&c.Status), findOperator, c.Name, c.Namespace, v1alpha1.AnnotationForceQuorum)
	}
	return fmt.Errorf("the operator has begun, but the group has no quorum after %s; last: %s. To follow: kubectl "+
		"cnmsql group status %s -n %s -w", after, progress(&c.Status), c.Name, c.Namespace)
}

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
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/observation"
)

func reinitCommand(k *kube) *cobra.Command {
	var yes bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:     "reinit CLUSTER INSTANCE[,INSTANCE...]",
		Short:   "Throw the data of replicas away and have them copied again",
		Example: "  kubectl cnmsql reinit demo demo-2\n  kubectl cnmsql reinit demo 2,3",
		Args:    exactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := k.open()
			if err != nil {
				return err
			}
			r := &reinit{newCaller(cmd, s, args[0], yes)}
			return r.reinit(cmd.Context(), strings.Split(args[1], ","), timeout)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	cmd.Flags().DurationVar(&timeout, "timeout", requestLimit, "how long to wait until the operator begins; the "+
		"request itself stays")
	return cmd
}

// reinit has the data of instances recreated.
type reinit struct{ caller }

func (r *reinit) reinit(ctx context.Context, instances []string, timeout time.Duration) error {
	c, err := getCluster(ctx, r.client, r.key)
	if err != nil {
		return err
	}
	names, err := r.mayBe(c, instances)
	if err != nil {
		return err
	}
	claims := r.claims(ctx, names) // of what is shown
	told, err := r.warn(ctx, c, names)
	if err != nil {
		return err
	}
	before := r.toldSoFar(ctx, c)
	if c, err = r.write(ctx, names, shown{c, claims, told}); err != nil {
		return err
	}
	r.say("Asked for the data of %s to be recreated; waiting until the operator begins.", strings.Join(names, ", "))
	return r.await(ctx, c, names, signs{before, claims}, timeout)
}

// shown is what there was when the human was asked.
type shown struct {
	cluster *v1alpha1.Cluster
	claims  map[string]types.UID
	toldOf
}

// toldOf is of whom it was said that they alone hold something, and who did not tell what they hold.
type toldOf struct{ errant, unheard []string }

// isOutdated tells what has changed since; "" when nothing has.
func (r *reinit) isOutdated(ctx context.Context, s *shown, now *v1alpha1.Cluster, names []string) string {
	if was, is := holderOf(&s.cluster.Status), holderOf(&now.Status); was != is {
		return fmt.Sprintf("the primary is %s by now, after %s", cmp.Or(is, "nobody"), cmp.Or(was, "nobody"))
	}
	if was, is := s.cluster.Status.PrimaryEpoch, now.Status.PrimaryEpoch; was != is {
		return fmt.Sprintf("it is epoch %d by now, after %d", is, was)
	}
	for _, name := range names {
		if r.isThrownAway(ctx, name, s.claims) {
			return name + " has another volume by now"
		}
		if slices.Contains(now.Status.DivergedInstances, name) &&
			!slices.Contains(s.cluster.Status.DivergedInstances, name) && !slices.Contains(s.errant, name) {
			return name + " has diverged meanwhile: it holds transactions that the primary does not have"
		}
	}
	return ""
}

// request is bound to what was shown. Where the claim could not be read, the operator binds it.
func (s *shown) request(name string) core.ReinitRequest {
	claim, known := s.claims[name]
	if !known || claim == "" {
		return core.ReinitRequest{Instance: name}
	}
	r := core.ReinitRequest{Instance: name, Epoch: s.cluster.Status.PrimaryEpoch, Volume: string(claim)}
	return r.Marked(slices.Contains(s.errant, name) || slices.Contains(s.cluster.Status.DivergedInstances, name),
		slices.Contains(s.unheard, name))
}

// signs are what there was before, by which it is told what became of a request.
type signs struct {
	events told
	claims map[string]types.UID
}

// claims are those of instances that are there and not being deleted, by their UIDs.
func (r *reinit) claims(ctx context.Context, names []string) map[string]types.UID {
	out := map[string]types.UID{}
	for _, name := range names {
		claim := &corev1.PersistentVolumeClaim{}
		err := r.client.Get(ctx, types.NamespacedName{Namespace: r.key.Namespace, Name: name}, claim)
		if err == nil && claim.DeletionTimestamp == nil {
			out[name] = claim.UID
		}
	}
	return out
}

// isThrownAway reports whether the volume that an instance had before is gone, or goes. What cannot
// be read is no sign of it.
func (r *reinit) isThrownAway(ctx context.Context, name string, before map[string]types.UID) bool {
	claim := &corev1.PersistentVolumeClaim{}
	err := r.client.Get(ctx, types.NamespacedName{Namespace: r.key.Namespace, Name: name}, claim)
	was, known := before[name]
	return known && (apierrors.IsNotFound(err) || err == nil && (claim.UID != was || claim.DeletionTimestamp != nil))
}

// mayBe are the names, none of which is the primary's.
func (r *reinit) mayBe(c *v1alpha1.Cluster, instances []string) ([]string, error) {
	var names []string
	for _, instance := range instances {
		name, err := instanceNamed(c, strings.TrimSpace(instance))
		if err != nil {
			return nil, err
		}
		if holderOf(&c.Status) == name {
			return nil, fmt.Errorf("%s is the primary of %s, of which all others copy their data: nothing was done. "+
				"Switch over first, then repeat: kubectl cnmsql promote %s INSTANCE -n %s",
				name, c.Name, c.Name, c.Namespace)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// warn tells what is thrown away, and asks back; --yes has it look in silence.
func (r *reinit) warn(ctx context.Context, c *v1alpha1.Cluster, names []string) (toldOf, error) {
	var out toldOf
	holder := holderOf(&c.Status)
	said := r.ask.all(ctx, names)
	// The primary's word must be the later one: see Facts.Reference.
	primary := r.ask.all(ctx, []string{holder})[holder]
	for _, name := range names {
		text, alone := whatOnlyItHas(c, name, said[name], holder, primary)
		if alone {
			out.errant = append(out.errant, name)
		}
		if w := said[name]; w.server() == nil {
			out.unheard = append(out.unheard, name)
		}
		if !r.yes {
			r.say("ALL DATA OF %s IS DELETED (its Pod and PersistentVolumeClaim), and copied again from "+
				"another instance.", name)
			r.say("  %s", text)
		}
	}
	return out, r.confirm(ctx, "yes", "Go on? Type yes:")
}

// whatOnlyItHas is what is lost with the data of an instance, as far as is known, and whether that is
// anything.
func whatOnlyItHas(c *v1alpha1.Cluster, name string, w word, holder string, primary word) (string, bool) {
	diverged := slices.Contains(c.Status.DivergedInstances, name)
	look := fmt.Sprintf("look first: kubectl cnmsql mysql %s --instance %s -n %s", c.Name, name, c.Namespace)
	r, known := w.Report.Get()
	answers, theirs := known && r.Server != nil, primary.server()
	var only gtid.Set
	compared := answers && theirs != nil
	switch {
	case compared:
		only = aloneHeld(c, &r, theirs)
	case answers:
		only = r.Errant
	}
	switch {
	case !only.IsEmpty():
		return fmt.Sprintf("It alone holds %s, LOST with its data: %s; %s", count(int(only.Count()), "transaction"),
			only.Abbreviate(10), look), true
	case diverged:
		return fmt.Sprintf("It has diverged: it holds transactions that the primary does not have, which are lost "+
			"with it. Which, it does not say now (%s); %s", cmp.Or(w.Problem, "mysqld does not answer"), look), true
	case !compared:
		return fmt.Sprintf("What only it holds is not known: %s",
			cmp.Or(w.Problem, cmp.Or(primary.Problem, "mysqld does not answer"))), false
	default:
		return "It holds nothing that " + holder + " does not have.", false
	}
}

// aloneHeld is what an instance holds, received or applied, and the primary does not. Of one that is
// online in the group or receives from the primary, what the primary itself commits proves nothing: it
// was asked a moment before. Whoever is neither has no more than it says.
func aloneHeld(c *v1alpha1.Cluster, r *core.Report, primary *core.Server) gtid.Set {
	alone := r.Server.Holds().Subtract(primary.Holds())
	if topologyOf(c).takesPart(c, r.Server) {
		alone = alone.Subtract(topologyOf(c).unproven(c, primary))
	}
	return alone.Union(r.Errant)
}

// write adds to what others have asked for, and reads again when they do so
// meanwhile. What it returns is the Cluster with the request: whoever follows from an
// older one takes a request that is not there yet for one that was taken off.
func (r *reinit) write(ctx context.Context, names []string, was shown) (*v1alpha1.Cluster, error) {
	for {
		c, err := getCluster(ctx, r.client, r.key)
		if err != nil {
			return nil, err
		}
		if why := r.isOutdated(ctx, &was, c, names); why != "" {
			return nil, fmt.Errorf("nothing was done: %s, so what was shown is no longer true. Check, and run the "+
				"command again", why)
		}
		all := observation.ReinitWish(c)
		for _, name := range names {
			if request := was.request(name); slices.Contains(core.ReinitNames(all), name) {
				all = core.BoundReinit(all, request)
			} else {
				all = append(all, request)
			}
		}
		text := observation.ReinitText(all)
		err = r.annotate(ctx, c, c.ResourceVersion, map[string]any{v1alpha1.AnnotationReinit: text})
		if apierrors.IsConflict(err) && pause(ctx, watchAgain) {
			continue
		}
		if err != nil {
			return nil,
				fmt.Errorf("writing the annotation %s of Cluster %s: %w (the right to patch clusters is needed)",
					v1alpha1.AnnotationReinit, c.Name, explain(err))
		}
		return c, nil
	}
}

// await waits until the operator has taken each name off the request: it has begun,
// or it has refused.
func (r *reinit) await(ctx context.Context, c *v1alpha1.Cluster, names []string, before signs,
	timeout time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	left := names
	last, err := r.follow(limited, c, progress, func(_ context.Context, now *v1alpha1.Cluster) error {
		left = slices.DeleteFunc(core.ReinitNames(observation.ReinitWish(now)), func(name string) bool {
			return !slices.Contains(names, name)
		})
		if len(left) > 0 {
			return errPending
		}
		return nil
	})
	switch {
	case errors.Is(err, errPending):
		return fmt.Errorf("after %s the operator has not begun with %s; last: %s. One is recreated after the other, "+
			"and only while the primary is healthy. The request stays; to follow: kubectl cnmsql status %s -n %s; to "+
			"take it back: kubectl annotate cluster %s -n %s %s-",
			timeout, strings.Join(left, ", "), progress(&last.Status), r.key.Name, r.key.Namespace, r.key.Name,
			r.key.Namespace, v1alpha1.AnnotationReinit)
	case err != nil:
		return err
	}
	return r.outcome(ctx, last, names, before)
}

// outcome tells what became of a request that was taken off: the operator has begun, it has refused,
// or somebody else took it back. Each of the first two leaves a sign.
func (r *reinit) outcome(ctx context.Context, c *v1alpha1.Cluster, names []string, before signs) error {
	var begun, open []string
	for _, name := range names {
		if r.isThrownAway(ctx, name, before.claims) {
			begun = append(begun, name)
		} else {
			open = append(open, name)
		}
	}
	for _, name := range open {
		e := r.newEvent(ctx, c, before.events, func(e *eventsv1.Event) bool {
			return because(core.ReasonReinit, core.RefusalReinitPrimary, core.RefusalTargetUnknown,
				core.RefusalReinitOutdated, core.RefusalReinitUnbound)(e) &&
				slices.Contains(strings.Fields(e.Note), name)
		})
		switch {
		case e != nil && isWarning(e):
			return fmt.Errorf("the operator refused: %s: %s%s", e.Reason, e.Note, besides(begun))
		case e == nil:
			return fmt.Errorf("the request for %s was removed, and its result is not visible: the operator may have "+
				"begun or refused, or a human took it back%s. Check: kubectl cnmsql events %s -n %s; and repeat it "+
				"if nothing was done. (To see the result, you need the right to get PersistentVolumeClaims or list "+
				"Events)",
				name, besides(begun), r.key.Name, r.key.Namespace)
		}
		begun = append(begun, name)
	}
	r.say("The operator has begun: Pod and volume of %s are recreated, and data is copied. To follow: kubectl cnmsql "+
		"status %s -n %s", strings.Join(begun, ", "), r.key.Name, r.key.Namespace)
	return nil
}

func besides(begun []string) string {
	if len(begun) == 0 {
		return ""
	}
	return "; the data of " + strings.Join(begun, ", ") + " is being recreated"
}

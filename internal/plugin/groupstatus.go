package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/declared"
)

func groupCommand(k *kube) *cobra.Command {
	cmd := &cobra.Command{Use: "group", Short: "Show a MySQL group as a majority of its members sees it, or recover " +
		"it when the majority is lost", Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			return fmt.Errorf("group %s is not known: kubectl cnmsql group status CLUSTER shows the group, group "+
				"recover CLUSTER recovers it with the remaining members", strings.Join(args[:min(len(args), 1)], ""))
		}}
	cmd.AddCommand(groupStatusCommand(k), groupRecoverCommand(k))
	return cmd
}

func groupStatusCommand(k *kube) *cobra.Command {
	var output string
	var watch bool
	cmd := &cobra.Command{
		Use:   "status CLUSTER",
		Short: "Show the group as the operator sees it, by the word of a majority of its members",
		Args:  exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(output, "table"); err != nil {
				return err
			}
			if watch && output != "" {
				return errors.New("-w prints tables; leave out either -w or -o")
			}
			s, err := k.open()
			if err != nil {
				return err
			}
			g := &groupViewer{newCaller(cmd, s, args[0], true)}
			if watch {
				return g.watch(cmd.Context())
			}
			return g.show(cmd.Context(), output)
		},
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "print it again at every change, until interrupted")
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml")
	return cmd
}

// groupViewer shows a group. It asks no instance: what one of them says may be a lie,
// and the operator has asked all of them.
type groupViewer struct{ caller }

func (g *groupViewer) show(ctx context.Context, output string) error {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	c, err := g.cluster(ctx)
	if err != nil {
		return err
	}
	if output != "" {
		return encode(g.out, output, groupOf(c))
	}
	return WriteGroup(g.aim.printer(g.out), c, g.now())
}

// cluster is one whose instances are members of a group.
func (g *groupViewer) cluster(ctx context.Context) (*v1alpha1.Cluster, error) {
	c, err := getCluster(ctx, g.client, g.key)
	if err != nil {
		return nil, err
	}
	return c, mustBeGroup(c)
}

func mustBeGroup(c *v1alpha1.Cluster) error {
	if of := declared.Topology(&c.Spec); !of.RunsGroup() {
		return fmt.Errorf("cluster %s is no group: its spec.replication.mode is %s. Its situation: kubectl cnmsql "+
			"status %s -n %s",
			c.Name, of, c.Name, c.Namespace)
	}
	return nil
}

// watch prints the group whenever it is seen to change.
func (g *groupViewer) watch(ctx context.Context) error {
	c, err := g.cluster(ctx)
	if err != nil {
		return err
	}
	last := ""
	for {
		if err := g.printNew(c, &last); err != nil {
			return err
		}
		changes, err := g.caller.watch(ctx, c)
		for err == nil {
			change, open := <-changes
			now, ok := change.Object.(*v1alpha1.Cluster)
			if !open || !ok {
				break
			}
			if now.Name != g.key.Name {
				continue
			}
			if err := g.printNew(now, &last); err != nil {
				return err
			}
		}
		if !pause(ctx, watchAgain) {
			return nil
		}
		now, err := getCluster(ctx, g.client, g.key)
		if err != nil {
			return err
		}
		c = now
	}
}

// printNew prints what differs from what was printed last.
func (g *groupViewer) printNew(c *v1alpha1.Cluster, last *string) error {
	var text strings.Builder
	if err := WriteGroup(g.aim.printer(&text), c, g.now()); err != nil || text.String() == *last {
		return err
	}
	*last = text.String()
	_, err := fmt.Fprintf(g.out, "%s\n%s\n", stamp(g.now()), *last)
	return err
}

// WriteGroup prints a group. Nothing in it changes by the mere passing of time.
func WriteGroup(out io.Writer, c *v1alpha1.Cluster, now time.Time) error {
	var text strings.Builder
	p, g, s := page{out: &text, now: now}, groupOf(c), &c.Status
	p.line("Cluster", "%s/%s: %s, %d of %d instances ready", c.Namespace, c.Name, cmp.Or(s.Phase, "Unknown"),
		s.ReadyInstances, c.Spec.Instances)
	p.line("Group", "%s, %s", cmp.Or(g.Name, "its name is not chosen yet"), map[bool]string{true: "bootstrapped",
		false: "not made yet"}[g.Bootstrapped])
	if g.Bootstrapped {
		p.line("Quorum", "%s", quorumText(g))
	}
	p.line("Primary", "%s", primaryText(g, core.Diagnosis(s.Diagnosis)))
	p.line("View", "%s", cmp.Or(g.ViewID, "-"))
	p.line("Happening", "%s", cmp.Or(inNamespace(c.Namespace, s.PhaseReason),
		"the operator has not said anything about this Cluster yet"))
	_, _ = fmt.Fprintln(&text)
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "INSTANCE\tSTATE\tROLE\tREACHABLE\tNOTE")
	for _, m := range g.Members {
		cells(w, m.Name, m.State, cmp.Or(m.Role, "-"), map[bool]string{true: "yes", false: "NO"}[m.Reachable],
			noteOf(m))
	}
	_ = w.Flush()
	_, _ = fmt.Fprintln(&text)
	sentence(&text, "This is what the operator saw last. What the instances say now: kubectl cnmsql status %s -n %s",
		c.Name, c.Namespace)
	_, err := io.WriteString(out, text.String())
	return err
}

// primaryText returns who is primary of the group. While a group has no quorum, or elects another,
// its primary is one that was, and the text says so.
func primaryText(g *Group, d core.Diagnosis) string {
	switch {
	case g.Primary == "":
		return "none yet"
	case d == core.GroupElecting:
		return "the group is electing one; the last was " + g.Primary
	case !g.HasQuorum:
		return g.Primary + " when the quorum was seen last"
	default:
		return g.Primary
	}
}

func noteOf(m Member) string {
	var notes []string
	if m.Fenced {
		notes = append(notes, "fenced by a human")
	}
	if m.Diverged {
		notes = append(notes, "holds transactions that the group lacks")
	}
	switch {
	case m.Excluded:
		notes = append(notes, "excluded by the last recovery; may not join until it is known what it holds")
	case m.LeftOut:
		notes = append(notes, "excluded by the last recovery; may join again")
	}
	if m.State == string(core.MemberUnknown) {
		notes = append(notes, "no instance could be asked")
	}
	return strings.Join(notes, "; ")
}

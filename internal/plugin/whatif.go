package plugin

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/whatif"
)

func whatifCommand(k *kube) *cobra.Command {
	var lose []string
	var output string
	var node, mysqld, pod bool
	cmd := &cobra.Command{
		Use:   "whatif CLUSTER --lose INSTANCE[,INSTANCE...]",
		Short: "Tell who would take over, when, and what would be lost, if instances were lost now",
		Long: `Tell who would take over, when, and what would be lost, if instances were lost now.
The cluster is observed as the operator does, the instances are lost in a model, and the
operator's own decisions are played forward in it. Nothing is changed.`,
		Example: "  kubectl cnmsql whatif demo --lose demo-1\n  kubectl cnmsql whatif demo --lose 1,3 --mysqld-down",
		Args:    exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(output, "text"); err != nil {
				return err
			}
			s, err := k.open()
			if err != nil {
				return err
			}
			if len(lose) == 0 {
				return fmt.Errorf("say which instances are lost: kubectl cnmsql whatif %s --lose INSTANCE -n %s; "+
					"kubectl cnmsql status %s -n %s shows which there are", args[0], s.namespace, args[0], s.namespace)
			}
			how := whatif.NodeLost
			if mysqld {
				how = whatif.MysqldDown
			} else if pod {
				how = whatif.PodDeleted
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), readLimit)
			defer cancel()
			w := &guesser{newCaller(cmd, s, args[0], false)}
			return w.guess(ctx, lose, how, output)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&lose, "lose", nil, "instances to lose, by name or number")
	f.BoolVar(&node, "node-lost", false, "their nodes are gone: nobody reaches them (the default)")
	f.BoolVar(&mysqld, "mysqld-down", false, "their mysqld has crashed, their Pods live")
	f.BoolVar(&pod, "pod-deleted", false, "their Pods are deleted, as by kubectl delete pod or a drain")
	f.StringVarP(&output, "output", "o", "", "json or yaml")
	cmd.MarkFlagsMutuallyExclusive("node-lost", "mysqld-down", "pod-deleted")
	return cmd
}

// guesser tells what would happen.
type guesser struct{ caller }

func (g *guesser) guess(ctx context.Context, lose []string, how whatif.How, output string) error {
	c, err := getCluster(ctx, g.client, g.key)
	if err != nil {
		return err
	}
	if lose, err = namesOf(c, lose); err != nil {
		return err
	}
	o, notes, err := g.observe(ctx)
	if err != nil {
		return err
	}
	a, err := whatif.Play(o, lose, how)
	if err != nil {
		return err
	}
	if note := g.operatorToo(ctx, &o, a); note != "" {
		notes = append(notes, note)
	}
	a.Assumed = append(a.Assumed, notes...)
	if output != "" {
		return encode(g.out, output, a)
	}
	return WriteAnswer(g.aim.printer(g.out), c.Namespace+"/"+c.Name, &o, a)
}

// operatorToo returns what the loss of nodes means for the operator, which may run on one of them:
// another has to take its place first, which is not counted. Who may not see the operator's Pods
// is told that, too. It returns "" when no operator runs on a lost node.
func (g *guesser) operatorToo(ctx context.Context, o *core.Observation, a whatif.Answer) string {
	if a.How != whatif.NodeLost {
		return ""
	}
	var pods corev1.PodList
	if err := g.client.List(ctx, &pods, client.MatchingLabels{"app.kubernetes.io/name": "cnmsql",
		"app.kubernetes.io/component": "operator"}); err != nil {
		return "this assumes that the operator's leader does not run on a lost node; if it does, another takes its " +
			"place within 10 to 15 s, which are not counted"
	}
	for i := range o.Instances {
		node := o.Instances[i].NodeName()
		for _, p := range pods.Items {
			if slices.Contains(a.Lost, o.Instances[i].Name) && node != "" && p.Spec.NodeName == node {
				return fmt.Sprintf("this assumes that the operator's leader does not run on a lost node; %s/%s runs "+
					"on %s, and if it leads, another takes its place within 10 to 15 s, which are not counted",
					p.Namespace, p.Name, node)
			}
		}
	}
	return ""
}

// WriteAnswer prints what would happen, the answer first.
func WriteAnswer(out io.Writer, cluster string, o *core.Observation, a whatif.Answer) error {
	var text strings.Builder
	p := page{out: &text, now: o.Now}
	p.line("If", "%s of %s %s", strings.Join(a.Lost, ", "), cluster, lostHow(a))
	topology := topologies[o.Cluster.Topology]
	p.line("Then", "%s", topology.outcome(a))
	p.group(a)
	if a.Proof != "" {
		p.line("Proof", "%s: %s", a.Proof, a.Evidence)
	}
	if a.Because != "" {
		namespace, _, _ := strings.Cut(cluster, "/")
		p.line("Because", "%s", inNamespace(namespace, a.Because))
	}
	if a.Losses != nil {
		p.line("Lost", "%s", lossText(a))
	}
	p.steps(topology, a)
	label := "Assumed"
	for _, text := range a.Assumed {
		p.line(label, "%s", text)
		label = ""
	}
	p.positions(o, a)
	_, err := io.WriteString(out, text.String())
	return err
}

func lostHow(a whatif.Answer) string {
	one := len(a.Lost) == 1
	switch {
	case a.How == whatif.MysqldDown && one:
		return "loses its mysqld now (a crash; the Pod lives)"
	case a.How == whatif.MysqldDown:
		return "lose their mysqld now (a crash; the Pods live)"
	case a.How == whatif.PodDeleted && one:
		return "has its Pod deleted now (kubectl delete pod, or a drain)"
	case a.How == whatif.PodDeleted:
		return "have their Pods deleted now (kubectl delete pod, or a drain)"
	case one:
		return "is lost now with its node (nobody reaches it)"
	default:
		return "are lost now with their nodes (nobody reaches them)"
	}
}

func refusalText(r core.Reason) string {
	if r == "" {
		return ""
	}
	return " (" + string(r) + ")"
}

func about(seconds float64) string {
	if seconds < 1 {
		return "less than a second"
	}
	return fmt.Sprintf("about %.0f s", seconds)
}

func lossText(a whatif.Answer) string {
	l := a.Losses
	switch {
	case l.Nothing:
		return "nothing that was acknowledged: " + l.Because
	case l.Transactions == nil:
		return "not known: " + l.Because
	case *l.Transactions == 0:
		return fmt.Sprintf("nothing as of now: %s lacks no transaction of %s at this moment; but %s", a.Promoted,
			a.Primary, l.Because)
	default:
		return fmt.Sprintf("%s as of now, which %s has and %s does not; %s", count(int(*l.Transactions), "transaction"),
			a.Primary, a.Promoted, l.Because)
	}
}

func (p page) steps(of topology, a whatif.Answer) {
	label := "Waits"
	for _, w := range a.Waits {
		p.line(label, "%5.1f s  %s", w.Seconds, w.For)
		label = ""
	}
	if a.Outcome != whatif.Promoted {
		return
	}
	does := of.opening()
	text := a.Promoted + does
	if a.ToApply > 0 {
		text = fmt.Sprintf("%s applies %s that it has received,%s", a.Promoted,
			count(int(a.ToApply), "transaction"), does)
	}
	p.line(label, "   then  %s: mostly well below a second", text)
}

// positions are what the answer rests on.
func (p page) positions(o *core.Observation, a whatif.Answer) {
	_, _ = fmt.Fprintln(p.out)
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "NOW\tNODE\tSTATE\tHOLDS\tLACKS\tLOST")
	primary := o.Instance(a.Primary)
	for i := range o.Instances {
		in := &o.Instances[i]
		state, holds, lacks, lost := "Unknown", "?", "?", ""
		if r, known := in.Report.Get(); known {
			state = string(r.State)
		}
		if s := serverOf(in); s != nil {
			holds = fmt.Sprint(s.Holds().Count())
			if ps := serverOf(primary); ps != nil {
				lacks = fmt.Sprint(ps.Executed.Subtract(s.Holds()).Count())
			}
		}
		if in.Name == a.Primary {
			lacks = "-"
		}
		if slices.Contains(a.Lost, in.Name) {
			lost = "lost"
		}
		cells(w, in.Name, cmp.Or(in.NodeName(), "?"), state, holds, lacks, lost)
	}
	_ = w.Flush()
}

// serverOf is what the mysqld of an instance says of itself; nil when that is not known, or the
// instance is not observed at all.
func serverOf(in *core.Instance) *core.Server {
	if in == nil {
		return nil
	}
	return word{Report: in.Report}.server()
}

package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/printable"
)

// Moment is one line of a cluster's timeline.
type Moment struct {
	At time.Time `json:"at"`
	// Who tells it: the operator, Kubernetes, or an instance by its name.
	Who string `json:"who"`
	// Name is the event's, the operation's, or what an instance has noted.
	Name    string `json:"name"`
	Text    string `json:"text"`
	Warning bool   `json:"warning,omitempty"`
	// Times is how often it happened, the last time at At; 0 and 1 are once.
	Times int `json:"times,omitempty"`
}

const byOperator = "operator"

func eventsCommand(k *kube) *cobra.Command {
	var output string
	var since time.Duration
	cmd := &cobra.Command{
		Use:   "events CLUSTER",
		Short: "Show what happened to a cluster as one timeline: events, operations, and what its instances have noted",
		Args:  exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(output, "table"); err != nil {
				return err
			}
			if since < 0 {
				return errors.New("--since is a duration in the past, like 30m or 2h")
			}
			s, err := k.open()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), readLimit)
			defer cancel()
			f, err := gather(ctx, s, args[0])
			if err != nil {
				return err
			}
			told, note := allEvents(ctx, s.client, f.Cluster)
			moments := within(Timeline(f, told), f.Now, since)
			if output == "" {
				return writeTimeline(s.aim.printer(cmd.OutOrStdout()), moments, note)
			}
			return encodeTimeline(cmd.OutOrStdout(), cmd.ErrOrStderr(), output, moments, note)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml")
	cmd.Flags().DurationVar(&since, "since", 0, "show only what happened in this time before now, like 30m")
	return cmd
}

// allEvents are those about the Cluster, its Pods and its volumes that Kubernetes still has;
// note says what could not be read.
func allEvents(ctx context.Context, c client.Reader, cluster *v1alpha1.Cluster) (about []eventsv1.Event, note string) {
	list := &eventsv1.EventList{}
	if err := c.List(ctx, list, client.InNamespace(cluster.Namespace)); err != nil {
		return nil, "The events could not be read: " + err.Error()
	}
	for _, e := range list.Items {
		of := e.Regarding
		isInstances := (of.Kind == "Pod" || of.Kind == "PersistentVolumeClaim") &&
			slices.Contains(cluster.Status.InstanceNames, of.Name)
		if isInstances || of.Kind == "Cluster" && of.UID == cluster.UID {
			about = append(about, e)
		}
	}
	return about, ""
}

// Timeline puts together what is known of a cluster's past, oldest first. Events are kept by
// Kubernetes for an hour, operations by the Cluster's status until ten others have ended,
// and the rest by the Pods and the instances for as long as they live.
func Timeline(f Facts, told []eventsv1.Event) []Moment {
	var all []Moment
	for i := range told {
		all = append(all, ofEvent(&told[i]))
	}
	for i := range f.Cluster.Status.LastOperations {
		all = append(all, ofOperation(&f.Cluster.Status.LastOperations[i]))
	}
	if b := f.Cluster.Status.Blocked; b != nil && b.Since != nil {
		name := "Blocked since then: " + b.Reason
		all = append(all, Moment{At: b.Since.Time, Who: byOperator, Name: name, Text: b.Message, Warning: true})
	}
	for name, pod := range f.Pods {
		all = append(all, ofPod(name, pod)...)
	}
	for name, l := range f.Live {
		if l.Report != nil && !l.Report.MysqldStarted.IsZero() {
			all = append(all, Moment{At: l.Report.MysqldStarted, Who: name, Name: "MysqldStarted",
				Text: "mysqld was started, and is " + string(l.Report.State) + " now"})
		}
	}
	slices.SortStableFunc(all, func(a, b Moment) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Who, b.Who), strings.Compare(a.Name, b.Name))
	})
	return all
}

func ofEvent(e *eventsv1.Event) Moment {
	m := Moment{At: e.EventTime.Time, Who: e.Regarding.Name, Name: e.Reason, Text: e.Note, Warning: isWarning(e)}
	if e.Regarding.Kind == "Cluster" {
		m.Who = byOperator
	}
	switch {
	case e.Series != nil:
		m.At, m.Times = e.Series.LastObservedTime.Time, int(e.Series.Count)
	case !e.DeprecatedLastTimestamp.IsZero():
		m.At, m.Times = e.DeprecatedLastTimestamp.Time, int(e.DeprecatedCount)
	}
	return m
}

// ofOperation tells an operation at its end: who takes writes since, and how long it took.
func ofOperation(p *v1alpha1.PastOperation) Moment {
	m := Moment{Who: byOperator, Name: p.Kind + "Ended"}
	var text []string
	switch {
	case p.Primary == "":
		text = append(text, "nobody took writes when it ended")
	case p.Primary == p.From:
		text = append(text, p.From+" takes writes again")
	case p.From == "":
		text = append(text, p.Primary+" takes writes")
	default:
		text = append(text, fmt.Sprintf("%s takes writes, after %s", p.Primary, p.From))
	}
	if p.To != "" && p.To != p.Primary {
		text[0] += "; " + p.To + " was wished"
		m.Warning = true
	}
	if p.Reason != "" {
		text[0] += " (" + p.Reason + ")"
	}
	if p.EndedAt != nil {
		m.At = p.EndedAt.Time
		if p.StartedAt != nil {
			text = append(text, "took "+rounded(p.EndedAt.Sub(p.StartedAt.Time)))
		}
		if p.StoppedAt != nil {
			text = append(text, "writes had stopped for "+rounded(p.EndedAt.Sub(p.StoppedAt.Time)))
		}
	}
	text = append(text, fmt.Sprintf("epoch %d", p.Epoch))
	if p.Proof != "" {
		text = append(text, "proof "+p.Proof)
	}
	m.Text = strings.Join(text, "; ")
	m.Warning = m.Warning || p.Kind == string(core.OperationFailover)
	return m
}

func rounded(d time.Duration) string { return d.Round(time.Millisecond).String() }

// ofPod tells when the Pod was made, and how its container of mysqld began and ended.
func ofPod(name string, pod *corev1.Pod) []Moment {
	var out []Moment
	if !pod.CreationTimestamp.IsZero() {
		out = append(out, Moment{At: pod.CreationTimestamp.Time, Who: name, Name: "PodCreated",
			Text: "the Pod was created; its node: " + cmp.Or(pod.Spec.NodeName, "none yet")})
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name != "mysql" {
			continue
		}
		if r := c.State.Running; r != nil {
			out = append(out, Moment{At: r.StartedAt.Time, Who: name, Name: "ContainerStarted",
				Text: fmt.Sprintf("the container was started, after %s", count(int(c.RestartCount), "restart"))})
		}
		for _, t := range []*corev1.ContainerStateTerminated{c.LastTerminationState.Terminated, c.State.Terminated} {
			if t != nil {
				out = append(out, Moment{At: t.FinishedAt.Time, Who: name, Name: "ContainerEnded",
					Warning: t.ExitCode != 0,
					Text: fmt.Sprintf("the container ended with exit code %d (%s)", t.ExitCode,
						cmp.Or(t.Reason, "no reason is known"))})
			}
		}
	}
	return out
}

// within leaves out what is older than since; 0 leaves out nothing.
func within(all []Moment, now time.Time, since time.Duration) []Moment {
	if since == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(m Moment) bool { return now.Sub(m.At) > since })
}

// encodeTimeline writes a timeline for programs. note is no part of it, and goes to complaints.
func encodeTimeline(out, complaints io.Writer, format string, all []Moment, note string) error {
	if note != "" {
		sentence(complaints, "%s", note)
	}
	return encode(out, format, all)
}

func writeTimeline(out io.Writer, all []Moment, note string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "TIME\tWHO\tWHAT")
	for _, m := range all {
		name := m.Name
		if m.Warning {
			name = "! " + name
		}
		text := m.Text
		if m.Times > 1 {
			text += fmt.Sprintf(" (%d times, the last one then)", m.Times)
		}
		cells(w, m.At.UTC().Format("01-02 15:04:05.000Z"), m.Who, name, text)
	}
	if err := w.Flush(); err != nil || note == "" {
		return err
	}
	_, err := fmt.Fprintln(out, printable.Text(note))
	return err
}

package plugin

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/tools/remotecommand"
	"sigs.k8s.io/yaml"

	"cnmsql.co/api/v1alpha1"
)

// forged is what a tenant writes who wants to write the rows of others, and what follows a comment.
const forged = "x\r\x1b[2K\x1b[1A\nTo do       kubectl delete cluster\tdemo\u2028---\u0085kind: Secret\u202e\u009b2J"

// mustBeLines reports what is not printable in an output, or more lines than there are without what was forged.
func mustBeLines(t *testing.T, what, got, harmless string) {
	t.Helper()
	for _, r := range got {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("%s: %q is printed in:\n%q", what, r, got)
			return
		}
	}
	if strings.Count(got, "\n") != strings.Count(harmless, "\n") {
		t.Errorf("%s: there are more lines than without it:\n%s", what, got)
	}
}

// spoken is a cluster of which an instance, a condition and the status say something.
func spoken(text string) *Facts {
	f := degraded()
	f.Cluster.Status.PhaseReason = text
	f.Cluster.Status.Conditions[0].Message = text
	f.live("demo-3").Server.Replication.SQLError = text
	f.Cluster.Status.InstancesReported[1].State = text
	f.Live["demo-2"] = Live{Problem: text}
	return f
}

func TestNobodyWritesTheRowsOfOthers(t *testing.T) {
	for what, print := range map[string]func(out io.Writer, text string) error{
		"status": func(out io.Writer, text string) error { return WriteTable(out, Build(*spoken(text))) },
		"list": func(out io.Writer, text string) error {
			return WriteList(out, []Report{Build(*spoken(text)), Build(*healthy())}, errors.New(text))
		},
		"events": func(out io.Writer, text string) error {
			told := []eventsv1.Event{event(time.Minute, "Pod", "demo-1", "Killing", text)}
			return writeTimeline(out, Timeline(*healthy(), told), text)
		},
		"group": func(out io.Writer, text string) error {
			c := online().Cluster
			c.Status.PhaseReason, c.Status.GroupReplication.Members[0].State = text, text
			return WriteGroup(out, c, now)
		},
		"backups": func(out io.Writer, text string) error {
			return WriteBackups(out, Backups{Cluster: "demo", Backups: []Backup{{Name: "a", Reason: text, Error: text}},
				Window: Window{Text: text}})
		},
		"say": func(out io.Writer, text string) error {
			p := &caller{out: out}
			p.say("%s", text)
			return nil
		},
		"a backup that goes on": func(out io.Writer, text string) error {
			l := newChangingLine(out)
			l.show(text, "a")
			l.say(text)
			return nil
		},
	} {
		var got, harmless strings.Builder
		if err := errors.Join(print(&got, forged), print(&harmless, "x")); err != nil {
			t.Fatal(err)
		}
		mustBeLines(t, what, got.String(), harmless.String())
	}
}

func TestAnErrorIsOneLineOfWhatCanBePrinted(t *testing.T) {
	cmd := &cobra.Command{SilenceErrors: true, SilenceUsage: true,
		RunE: func(*cobra.Command, []string) error { return errors.New(forged) }}
	cmd.SetArgs(nil)
	aimErrors(cmd, &kube{})
	mustBeLines(t, "an error", cmd.Execute().Error(), "")
}

func TestANoteOfARestoreMakesNoObject(t *testing.T) {
	s := newScene(t, healthy().Cluster, nil)
	r := &restorer{s.caller}
	manifest, err := manifestOf(&v1alpha1.Cluster{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.print([]string{"Warning: the archive is not well: " + forged}, manifest); err != nil {
		t.Fatal(err)
	}
	first, rest, _ := strings.Cut(s.out.String(), "\n")
	mustBeLines(t, "a note", first, "")
	var read map[string]any
	if err := yaml.Unmarshal([]byte(rest), &read); err != nil || !strings.HasPrefix(first, "# ") {
		t.Errorf("%q, %v", first, err)
	}
}

func TestWhatAPodSaysWithoutEndIsNotRead(t *testing.T) {
	said := 0
	endless := func(ctx context.Context, o remotecommand.StreamOptions) error {
		pod := readerFunc(func(p []byte) (int, error) {
			if ctx.Err() != nil || said > 4*maxSaid {
				return 0, io.EOF
			}
			said += len(p)
			return len(p), nil
		})
		_, _ = io.Copy(o.Stdout, pod) // client-go goes on without the error of a local stream
		return nil
	}
	s := plays(endless)
	_, err := s.askManager(t.Context(), "demo-1")
	mustFail(t, err, "what it says is longer than 4 MiB")
	if said > 2*maxSaid {
		t.Errorf("%d bytes were read", said)
	}
	said = 0
	s.executor = func(string, []string, streams) (remotecommand.Executor, error) { return inPod(endless), nil }
	_, err = s.marksItsEnd(t.Context(), "demo-1", []string{"cnmsql", "instance", "client"})
	mustFail(t, err, "what it says is longer than 4 MiB")
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

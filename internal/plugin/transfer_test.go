package plugin

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"

	"cnmsql.co/internal/endmark"
)

// inPod plays a command in a Pod, and how the connection to it ends.
type inPod func(ctx context.Context, o remotecommand.StreamOptions) error

func (p inPod) Stream(o remotecommand.StreamOptions) error { return p(context.Background(), o) }

func (p inPod) StreamWithContext(ctx context.Context, o remotecommand.StreamOptions) error {
	return p(ctx, o)
}

// plays is a session in whose Pods p runs; their binary knows the end mark.
func plays(p inPod) *session {
	return &session{namespace: "shop", executor: podsOf("      --end-mark", p)}
}

// podsOf makes executors of Pods whose commands have certain flags and run as p.
func podsOf(flags string, p inPod) executors {
	return func(_ string, command []string, _ streams) (remotecommand.Executor, error) {
		if command[len(command)-1] == "--help" {
			return inPod(func(_ context.Context, o remotecommand.StreamOptions) error {
				_, err := io.WriteString(o.Stdout, "Flags:\n"+flags+"\n  -h, --help\n")
				return err
			}), nil
		}
		return p, nil
	}
}

// marked plays a command that ends with the mark.
func marked(write func(o remotecommand.StreamOptions, out io.Writer) error) inPod {
	return func(_ context.Context, o remotecommand.StreamOptions) error {
		return endmark.Write(o.Stdout, o.Stderr, func(out io.Writer) error { return write(o, out) })
	}
}

// between is a command of the plugin with streams of a test.
func between(t *testing.T, in io.Reader, out, complaints io.Writer) *cobra.Command {
	t.Helper()
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	cmd.SetIn(in)
	cmd.SetOut(out)
	cmd.SetErr(complaints)
	return cmd
}

// noSpace is a file on a disk that becomes full.
type noSpace struct{ room int }

func (f *noSpace) Write(p []byte) (int, error) {
	n := min(len(p), f.room)
	f.room -= n
	if n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

// ended is how the command itself ended; client-go returns no more than that.
var ended = exec.CodeExitError{Err: errors.New("command terminated"), Code: 2}

// client-go logs the error of the copy, and returns nil.
func TestADumpThatTheDiskDoesNotTakeFails(t *testing.T) {
	for name, end := range map[string]error{"mysqldump ends well": nil, "mysqldump fails, too": ended} {
		s := plays(func(ctx context.Context, o remotecommand.StreamOptions) error {
			if _, err := io.Copy(o.Stdout, strings.NewReader("INSERT INTO orders")); err == nil {
				t.Errorf("%s: the disk took all", name)
			}
			if ctx.Err() == nil {
				t.Errorf("%s: the rest is sent for nothing", name)
			}
			return end
		})
		cmd := between(t, strings.NewReader(""), &noSpace{5}, io.Discard)
		err := s.runOn(cmd, healthy().Cluster, "", dumpArgs([]string{"shop"}))
		mustFail(t, err, "writing to standard output: no space left on device: the output is incomplete; repeat it")
		if code, told := ExitCode(err); code == 0 || !told {
			t.Errorf("%s: the plugin ends with %d, and tells why: %t", name, code, told)
		}
	}
}

// mysql takes what is missing for the end, and ends with 0.
func TestInputThatCannotBeReadFails(t *testing.T) {
	s := plays(func(_ context.Context, o remotecommand.StreamOptions) error {
		_, _ = io.Copy(io.Discard, o.Stdin)
		return nil
	})
	in := io.MultiReader(strings.NewReader("INSERT"), iotest.ErrReader(syscall.EIO))
	err := s.attach(between(t, in, io.Discard, io.Discard), "demo-1", clientCommand("root", nil))
	mustFail(t, err, "reading standard input: input/output error: it is not known how much of the input was executed")
}

func TestWhatWentThroughIsNoError(t *testing.T) {
	s := plays(marked(func(o remotecommand.StreamOptions, out io.Writer) error {
		_, err := io.Copy(out, o.Stdin)
		_, warned := io.WriteString(o.Stderr, "Warning\n")
		return errors.Join(err, warned)
	}))
	var out, complaints bytes.Buffer
	cmd := between(t, strings.NewReader("SELECT 1"), &out, &complaints)
	if err := s.attach(cmd, "demo-1", clientCommand("root", nil)); err != nil || out.String() != "SELECT 1" {
		t.Errorf("%q, %v", out.String(), err)
	}
	if complaints.String() != "Warning\n" {
		t.Errorf("it complains %q", complaints.String())
	}
}

// Where the kubelet, the runtime or the connection between API server and kubelet ends, StreamWithContext
// returns nil.
func TestAConnectionThatBreaksOffIsNoSuccess(t *testing.T) {
	half := func(_ context.Context, o remotecommand.StreamOptions) error {
		_, err := io.WriteString(o.Stdout, "INSERT INTO ord")
		return err
	}
	lastPartLost := func(_ context.Context, o remotecommand.StreamOptions) error {
		_, err := io.WriteString(o.Stdout, "INSERT INTO ord")
		return errors.Join(err, endmark.Write(io.Discard, o.Stderr, func(out io.Writer) error {
			_, err := io.WriteString(out, "INSERT INTO orders")
			return err
		}))
	}
	for name, p := range map[string]inPod{"in between": half, "with the last bytes on their way": lastPartLost} {
		var out bytes.Buffer
		cmd := between(t, strings.NewReader(""), &out, io.Discard)
		err := plays(p).runOn(cmd, healthy().Cluster, "", dumpArgs([]string{"shop"}))
		mustFail(t, err, "the connection to Pod demo-1 broke off: the output is incomplete; repeat it")
		if code, told := ExitCode(err); code == 0 || !told {
			t.Errorf("%s: the plugin ends with %d, and tells why: %t", name, code, told)
		}
		err = plays(p).attach(cmd, "demo-1", clientCommand("root", nil))
		mustFail(t, err, "it is not known how much of the input was executed")
	}
}

// An earlier release refuses the flag, and is not given it.
func TestAnEarlierReleaseIsAskedForNoMark(t *testing.T) {
	var given []string
	old := podsOf("", func(_ context.Context, o remotecommand.StreamOptions) error {
		_, err := io.WriteString(o.Stdout, "INSERT INTO orders")
		return err
	})
	s := &session{namespace: "shop",
		executor: func(pod string, command []string, with streams) (remotecommand.Executor, error) {
			given = append(given, command...)
			return old(pod, command, with)
		}}
	var out, complaints bytes.Buffer
	cmd := between(t, strings.NewReader(""), &out, &complaints)
	if err := s.runOn(cmd, healthy().Cluster, "", dumpArgs([]string{"shop"})); err != nil ||
		out.String() != "INSERT INTO orders" || slices.Contains(given, "--"+endmark.Flag) {
		t.Errorf("%v; %q; the Pod was given %q", err, out.String(), given)
	}
	if !strings.Contains(complaints.String(), "demo-1 runs an earlier release of cnmsql, which does not tell") ||
		!strings.Contains(complaints.String(), "its last line begins with: -- Dump completed") {
		t.Errorf("it says %q", complaints.String())
	}
}

// A command that is given its standard input, and refuses its flags, has read a part of it.
func TestWhetherThereIsAMarkIsAskedBeforeAnythingIsSent(t *testing.T) {
	s := &session{namespace: "shop", executor: func(string, []string, streams) (remotecommand.Executor, error) {
		return inPod(func(context.Context, remotecommand.StreamOptions) error { return nil }), nil
	}}
	in := strings.NewReader("DROP TABLE orders")
	err := s.attach(between(t, in, io.Discard, io.Discard), "demo-1", clientCommand("root", nil))
	mustFail(t, err, "the connection broke off before the client was started, and nothing was done")
	if in.Len() != len("DROP TABLE orders") {
		t.Error("it was sent all the same")
	}
}

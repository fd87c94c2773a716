package plugin

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
)

// inPod plays a command in a Pod, and how the connection to it ends.
type inPod func(ctx context.Context, o remotecommand.StreamOptions) error

func (p inPod) Stream(o remotecommand.StreamOptions) error { return p(context.Background(), o) }

func (p inPod) StreamWithContext(ctx context.Context, o remotecommand.StreamOptions) error {
	return p(ctx, o)
}

// plays is a session in whose Pods p runs.
func plays(p inPod) *session {
	return &session{namespace: "shop", executor: func(string, []string, streams) (remotecommand.Executor, error) {
		return p, nil
	}}
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
		mustFail(t, err, "writing to standard output: no space left on device: only a part went through; do it again")
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
	mustFail(t, err, "reading standard input: input/output error: only a part went through; do it again")
}

func TestWhatWentThroughIsNoError(t *testing.T) {
	s := plays(func(_ context.Context, o remotecommand.StreamOptions) error {
		_, err := io.Copy(o.Stdout, o.Stdin)
		return err
	})
	var out bytes.Buffer
	cmd := between(t, strings.NewReader("SELECT 1"), &out, io.Discard)
	if err := s.attach(cmd, "demo-1", clientCommand("root", nil)); err != nil || out.String() != "SELECT 1" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

package main

import (
	"bytes"
	"io"
	"testing"

	"github.com/spf13/cobra"

	"cnmsql.co/internal/endmark"
)

func TestTheEndIsMarkedWhereThatIsAskedFor(t *testing.T) {
	for _, args := range [][]string{{}, {"--" + endmark.Flag}} {
		var out, complaints, shown bytes.Buffer
		cmd := &cobra.Command{}
		runMarked(cmd, func(out io.Writer) error {
			_, err := io.WriteString(out, "lost")
			return err
		})
		cmd.SetArgs(args)
		cmd.SetOut(&out)
		cmd.SetErr(&complaints)
		if err := cmd.ExecuteContext(t.Context()); err != nil || out.String() != "lost" {
			t.Fatalf("%q: %q, %v", args, out.String(), err)
		}
		f := endmark.NewFilter(&shown)
		if _, err := f.Write(complaints.Bytes()); err != nil {
			t.Fatal(err)
		}
		if f.Ended(4) != (len(args) > 0) || shown.Len() > 0 {
			t.Errorf("%q: it ends with %q", args, complaints.String())
		}
	}
}

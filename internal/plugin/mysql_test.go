package plugin

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"k8s.io/client-go/tools/remotecommand"

	"cnmsql.co/internal/core"
)

func TestAClientForWhichNoConnectionIsLeftIsExplained(t *testing.T) {
	var shown bytes.Buffer
	for output, isTold := range map[string]bool{
		"ERROR 1040 (HY000): Too many connections\n":                                     true,
		"ERROR 1045 (28000): Access denied\n":                                            false,
		"mysqldump: Got error: 1040: Too many connections when trying to connect\n":      true,
		"mysqldump: Got error: 1049: Unknown database 'x' when selecting the database\n": false,
	} {
		seen := &transfer{pod: "demo-1"}
		out := &heedful{Writer: &shown, transfer: seen}
		if _, err := out.Write([]byte(output)); err != nil {
			t.Fatal(err)
		}
		if code, told := ExitCode(seen.explain(ended, 0)); code != 2 || told != isTold {
			t.Errorf("after %q the plugin ends with %d, and tells more: %t", output, code, told)
		}
	}
	if code, told := ExitCode(explainExec("demo-1", true, nil)); code != 0 || told {
		t.Errorf("a client that came in ends with %d, and more is told: %t", code, told)
	}
}

// What a dump is made of may lack what another primary has taken since.
func TestWhoeverReadsOfAPrimaryThatMayBeStaleIsWarned(t *testing.T) {
	for diagnosis, warned := range map[core.Diagnosis]bool{core.PrimaryHealthy: false, core.PrimaryUnreachable: true} {
		c := healthy().Cluster
		c.Status.Diagnosis = string(diagnosis)
		var complaints bytes.Buffer
		s := plays(marked(func(remotecommand.StreamOptions, io.Writer) error { return nil }))
		cmd := between(t, strings.NewReader(""), io.Discard, &complaints)
		if err := s.runOn(cmd, c, "", dumpArgs([]string{"shop"})); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(complaints.String(), "what it holds may be old") != warned {
			t.Errorf("%s: it says %q", diagnosis, complaints.String())
		}
	}
}

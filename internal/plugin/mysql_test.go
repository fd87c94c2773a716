package plugin

import (
	"bytes"
	"testing"
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

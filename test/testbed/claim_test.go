package testbed

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestALocalKubernetesIsClaimedByOneProcess: this process has it, another does not get it.
func TestALocalKubernetesIsClaimedByOneProcess(t *testing.T) {
	const name = "claim-test"
	if os.Getenv("CLAIM_TEST") != "" {
		if err := Claim(name); err != nil {
			t.Fatal(err)
		}
		return
	}
	other := func() (string, error) {
		cmd := exec.Command(os.Args[0], "-test.run="+t.Name())
		cmd.Env = append(os.Environ(), "CLAIM_TEST=1")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := other(); err != nil {
		t.Fatalf("nobody has it, and another does not get it: %s", out)
	}
	if err := Claim(name); err != nil {
		t.Fatal(err)
	}
	if out, err := other(); err == nil || !strings.Contains(out, "is in use by another run") {
		t.Errorf("another has it, too: %v %s", err, out)
	}
}

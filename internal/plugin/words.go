package plugin

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"cnmsql.co/internal/core"
)

// meanings tell what happens at a step of an operation.
var meanings = map[core.Step]string{
	core.StepCatchUp: "the target catches up; the old primary still takes writes",
	core.StepDemote:  "the old primary is being made read-only",
	core.StepCopy: "the primary is read-only and gives its data to others; it takes writes again when they are " +
		"attached",
	core.StepDelay:      "waiting for spec.failoverDelay",
	core.StepProve:      "getting a proof that the old primary cannot write",
	core.StepElect:      "reading what each replica holds",
	core.StepPromote:    "the new primary is becoming writable",
	core.StepSetPrimary: "the group is asked to make the target primary",
	core.StepForce:      "a survivor forces the quorum with the remaining members",
	core.StepReboot:     "an instance that holds all transactions reboots the group",
	core.StepReturn:     "going back to the old primary",
}

func describeState(r *core.Report) string {
	if r.Message != "" && r.State != core.Running {
		return fmt.Sprintf("%s (%s)", r.State, r.Message)
	}
	return string(r.State)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func isAre(n int, what string) string {
	switch n {
	case 0:
		return "no " + what + " is"
	case 1:
		return "only 1 " + what + " is"
	default:
		return fmt.Sprintf("only %d %ss are", n, what)
	}
}

func timeOf(t *metav1.MicroTime) *time.Time {
	if t == nil {
		return nil
	}
	return &t.Time
}

// ago is how long before now t was. A clock of the reader's that is behind the
// operator's shows 0s.
func ago(now time.Time, t *time.Time) string {
	return duration.HumanDuration(max(0, now.Sub(*t)))
}

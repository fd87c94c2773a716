package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// conditionLimit is how many bytes the message of a condition may have by the CustomResourceDefinition.
const conditionLimit = 32768

// denials are what an admission webhook says that refuses n objects.
func denials(n int) (all []error) {
	for i := range n {
		text := fmt.Sprintf(`admission webhook "validate.example.com" denied the request of object %d: `, i)
		all = append(all, errors.New(text+strings.Repeat("a", 628-len(text))))
	}
	return all
}

// TestOfManyRefusalsTheFirstFewAreTold, what the user has to mend before all.
func TestOfManyRefusalsTheFirstFewAreTold(t *testing.T) {
	missing := &userError{core.Problem{Reason: core.ProblemSecretMissing, Message: "make the Secret"}}
	p := problemFrom(together(append(denials(62), missing)...))
	said := p.Message
	if p.Reason != core.ProblemSecretMissing || !strings.HasPrefix(said, "make the Secret; PrerequisitesFailed: ") ||
		!strings.HasSuffix(said, "; and 58 more; it is tried again") || len(said) > 2*toldBytes {
		t.Errorf("%d bytes are told: %s: %s", len(said), p.Reason, said)
	}
	for i, want := range []bool{true, true, true, true, false} {
		if got := strings.Contains(said, fmt.Sprintf("object %d: ", i)); got != want {
			t.Errorf("that object %d is refused is told: %t", i, got)
		}
	}
	if said := together(denials(6)...).Error(); !strings.HasSuffix(said, "; and 1 more") || len(said) > 2*toldBytes {
		t.Errorf("%d bytes are said: %s", len(said), said)
	}
	alone := denials(1)[0]
	if p := problemFrom(alone); p.Message != alone.Error()+"; it is tried again" {
		t.Errorf("one alone is told as %s", p.Message)
	}
}

// TestNoSentenceKeepsAStatusFromBeingWritten: nothing is done for a Cluster until its status is written,
// and the API server refuses all of a status for one condition that is too long.
func TestNoSentenceKeepsAStatusFromBeingWritten(t *testing.T) {
	c := aCluster()
	server := newFake(t).WithReturnManagedFields().WithObjects(c).WithStatusSubresource(c).WithInterceptorFuncs(
		interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, w client.Client, sub string, obj client.Object,
			o ...client.SubResourceUpdateOption) error {
			if c, is := obj.(*v1alpha1.Cluster); is {
				for _, cond := range c.Status.Conditions {
					if len(cond.Message) > conditionLimit {
						return fmt.Errorf("status.conditions: Too long: %d bytes", len(cond.Message))
					}
				}
			}
			return w.SubResource(sub).Update(ctx, obj, o...)
		}}).Build()
	r := operatorOf(t, server)
	must(t, server.Get(t.Context(), clusterKey, c))
	long := strings.Repeat("a", conditionLimit)
	r.state(c).asides = []core.Problem{{Reason: core.ProblemAuthorityEnds, Message: long}}
	_, _, err := r.pass(t.Context(), &c, nil, &core.Problem{Reason: core.ProblemPrerequisites, Message: long + long})
	if err != nil {
		t.Fatalf("nothing is done for the Cluster: %v", err)
	}
	is := v1alpha1.ClusterStatus{Blocked: &v1alpha1.Notice{Message: long}, Notices: c.Status.Notices,
		PhaseReason: c.Status.PhaseReason}
	shorten(&is)
	if len(is.Notices) == 0 {
		t.Fatal("what is the matter is not told")
	}
	for what, said := range map[string]string{"the reason": is.PhaseReason, "the hindrance": is.Blocked.Message,
		"a notice": is.Notices[0].Message} {
		if len(said) > sentenceLimit || !strings.HasSuffix(said, "aaa…") {
			t.Errorf("%s has %d bytes", what, len(said))
		}
	}
}

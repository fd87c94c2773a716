package plugin

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

func takeOffReinit(s *scene) {
	c := s.cluster()
	delete(c.Annotations, v1alpha1.AnnotationReinit)
	if err := s.client.Update(context.Background(), c); err != nil {
		s.t.Error(err)
	}
}

func claimOf(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name,
		UID: "before"}}
}

func beginReinit(s *scene) {
	if err := s.client.Delete(context.Background(), claimOf("demo-2")); err != nil {
		s.t.Error(err)
	}
	takeOffReinit(s)
}

// TestReinitTellsWhatBecameOfARequestThatIsTakenOff: the annotation is gone in each case, and only
// the volume or an event tells them apart.
func TestReinitTellsWhatBecameOfARequestThatIsTakenOff(t *testing.T) {
	refuses := func(name string) func(*scene) {
		return func(s *scene) {
			s.warn(core.RefusalReinitPrimary, name+" is the primary")
			takeOffReinit(s)
		}
	}
	for name, x := range map[string]struct {
		operator func(*scene)
		noEvents bool
		want     string
	}{
		"the volume is thrown away":          {beginReinit, true, ""},
		"the operator refuses":               {refuses("demo-2"), false, "ReinitOfPrimaryRefused: demo-2"},
		"it refuses, and events are unread":  {refuses("demo-2"), true, "its result is not visible"},
		"somebody takes it back":             {takeOffReinit, false, "its result is not visible"},
		"it tells of another, which is told": {refuses("demo-3"), false, "its result is not visible"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, healthy().Cluster, x.operator, client.Object(claimOf("demo-2")))
			if x.noEvents {
				noEvents(s)
			}
			s.yes = true
			err := (&reinit{s.caller}).reinit(context.Background(), []string{"2"}, 5*time.Second)
			if x.want != "" {
				mustFail(t, err, x.want)
			} else if err != nil {
				t.Error(err)
			}
			if begun := strings.Contains(s.out.String(), "The operator has begun"); begun != (x.want == "") {
				t.Errorf("it says that the operator has begun: %t\n%s", begun, s.out.String())
			}
		})
	}
}

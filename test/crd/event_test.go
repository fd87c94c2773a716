package crd

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/tell"
)

// An event that is too long for the API server is seen by nobody.
func TestALongEventIsTaken(t *testing.T) {
	_ = api(t)
	set, err := kubernetes.NewForConfig(server)
	if err != nil {
		t.Fatal(err)
	}
	b := events.NewBroadcaster(&events.EventSinkImpl{Interface: set.EventsV1()})
	if err := b.StartRecordingToSinkWithContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Shutdown)
	about := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a-long-event", UID: "uid"}}
	tell.Event(b.NewRecorder(scheme.Scheme, "cnmsql"), about, core.Event{Warning: true,
		Reason: core.ReasonActionFailed, Message: "could not " + strings.Repeat("é", 2000)})
	var all *eventsv1.EventList
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); <-time.After(50 * time.Millisecond) {
		if all, err = set.EventsV1().Events("default").List(t.Context(), metav1.ListOptions{
			FieldSelector: "regarding.name=" + about.Name}); err != nil {
			t.Fatal(err)
		}
		if len(all.Items) > 0 {
			return
		}
	}
	t.Error("the API server has no such event")
}

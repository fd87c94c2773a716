package crd

import (
	"slices"
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

// recorded has a real recorder tell of a Pod, and waits for what the API server has of it.
type recorded struct {
	t     *testing.T
	set   *kubernetes.Clientset
	to    events.EventRecorder
	about *corev1.Pod
}

func record(t *testing.T, about string) *recorded {
	t.Helper()
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
	return &recorded{t: t, set: set, to: b.NewRecorder(scheme.Scheme, "cnmsql"),
		about: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: about, UID: "uid"}}}
}

// await waits until the events are as they should be.
func (r *recorded) await(what string, is func([]eventsv1.Event) bool) {
	r.t.Helper()
	var all *eventsv1.EventList
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); <-time.After(50 * time.Millisecond) {
		var err error
		if all, err = r.set.EventsV1().Events("default").List(r.t.Context(), metav1.ListOptions{
			FieldSelector: "regarding.name=" + r.about.Name}); err != nil {
			r.t.Fatal(err)
		}
		if is(all.Items) {
			return
		}
	}
	r.t.Fatalf("the API server has not %s: %+v", what, all.Items)
}

// An event that is too long for the API server is seen by nobody.
func TestALongEventIsTaken(t *testing.T) {
	r := record(t, "a-long-event")
	tell.Event(r.to, r.about, core.Event{Warning: true, Reason: core.ReasonActionFailed,
		Message: "could not " + strings.Repeat("é", 2000)})
	r.await("the event", func(all []eventsv1.Event) bool { return len(all) > 0 })
}

// Two instances are made in one look at their Cluster. What is told again is counted, and no event of
// its own.
func TestEachTextOfOneReasonIsRead(t *testing.T) {
	r := record(t, "two-of-one-reason")
	one := core.Event{Reason: core.ReasonInstanceCreated, Message: "making db-1"}
	two := core.Event{Reason: core.ReasonInstanceCreated, Message: "making db-2"}
	tell.Event(r.to, r.about, one)
	tell.Event(r.to, r.about, two)
	has := func(note string, often int32) func(eventsv1.Event) bool {
		return func(e eventsv1.Event) bool {
			return e.Note == note && (e.Series == nil && often == 1 || e.Series != nil && e.Series.Count == often)
		}
	}
	r.await("both texts", func(all []eventsv1.Event) bool {
		return len(all) == 2 && slices.ContainsFunc(all, has(one.Message, 1)) &&
			slices.ContainsFunc(all, has(two.Message, 1))
	})
	tell.Event(r.to, r.about, one)
	r.await("the first text twice", func(all []eventsv1.Event) bool {
		return len(all) == 2 && slices.ContainsFunc(all, has(one.Message, 2))
	})
}

package plugin

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

func event(ago time.Duration, kind, name string, reason core.Reason, note string) eventsv1.Event {
	return eventsv1.Event{Regarding: corev1.ObjectReference{Kind: kind, Name: name}, EventTime: *at(ago),
		Reason: string(reason), Note: note, Type: corev1.EventTypeNormal}
}

// night is a failover, an hour after a switchover that was given up.
func night() (Facts, []eventsv1.Event) {
	f := healthy()
	s := &f.Cluster.Status
	s.LastOperations = []v1alpha1.PastOperation{
		{Kind: "Switchover", Reason: "Requested", From: "demo-2", To: "demo-1", Primary: "demo-2", Epoch: 3,
			StartedAt: at(62 * time.Minute), StoppedAt: at(61 * time.Minute),
			EndedAt: at(60*time.Minute + 55*time.Second)},
		{Kind: "Failover", Reason: "MysqldDown", From: "demo-2", Primary: "demo-1", Epoch: 4, Proof: "ManagerFenced",
			StartedAt: at(5 * time.Minute), StoppedAt: at(5*time.Minute + 200*time.Millisecond),
			EndedAt: at(5*time.Minute - 1340*time.Millisecond)},
	}
	s.Blocked = &v1alpha1.Notice{Reason: "NoProof", Message: "nobody is promoted", Since: at(time.Minute)}
	pod := f.Pods["demo-2"]
	pod.CreationTimestamp = metav1.Time{Time: now.Add(-49 * time.Hour)}
	pod.Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "mysql", RestartCount: 1,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{
			StartedAt: metav1.Time{Time: now.Add(-4 * time.Minute)}}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137,
			Reason: "OOMKilled", FinishedAt: metav1.Time{Time: now.Add(-5 * time.Minute)}}}}
	f.Live["demo-2"].Report.MysqldStarted = now.Add(-4*time.Minute + 2*time.Second)
	started := event(5*time.Minute, "Cluster", "demo", core.ReasonFailover, "the primary demo-2 fails (MysqldDown)")
	started.Type = corev1.EventTypeWarning
	often := event(3*time.Hour, "Pod", "demo-3", "BackOff", "Back-off restarting failed container")
	often.Series = &eventsv1.EventSeries{Count: 7, LastObservedTime: *at(90 * time.Minute)}
	return *f, []eventsv1.Event{started, often}
}

func TestWhatHappenedIsOneTimeline(t *testing.T) {
	f, told := night()
	var out strings.Builder
	if err := writeTimeline(&out, Timeline(f, told), ""); err != nil {
		t.Fatal(err)
	}
	golden(t, "events.txt", out.String())
}

func TestProgramsAreToldThatEventsCouldNotBeRead(t *testing.T) {
	f, _ := night()
	for _, format := range []string{"json", "yaml"} {
		var out, complaints strings.Builder
		note := "The events could not be read: jo may not"
		if err := encodeTimeline(&out, &complaints, format, Timeline(f, nil), note); err != nil {
			t.Fatal(err)
		}
		if complaints.String() != note+"\n" || strings.Contains(out.String(), note) {
			t.Errorf("-o %s: it complains %q, and prints %s", format, complaints.String(), out.String())
		}
	}
}

func TestWhatIsOlderIsLeftOut(t *testing.T) {
	f, told := night()
	for _, m := range within(Timeline(f, told), f.Now, 10*time.Minute) {
		if f.Now.Sub(m.At) > 10*time.Minute {
			t.Errorf("%s of %s is shown", m.Name, m.At)
		}
	}
	if all := within(Timeline(f, told), f.Now, 0); len(all) != 9 {
		t.Errorf("%d moments without a bound", len(all))
	}
}

func TestEventsOfOthersAreNoPartOfIt(t *testing.T) {
	s := newScene(t, healthy().Cluster, nil)
	mine := event(time.Minute, "Pod", "demo-1", "Killing", "Stopping container mysql")
	mine.Name, mine.Namespace = "a", "shop"
	others := event(time.Minute, "Pod", "web-1", "Killing", "Stopping container web")
	others.Name, others.Namespace = "b", "shop"
	former := event(time.Minute, "Cluster", "demo", core.ReasonFailover, "of a deleted Cluster of this name")
	former.Name, former.Namespace, former.Regarding.UID = "c", "shop", "another"
	for _, e := range []eventsv1.Event{mine, others, former} {
		if err := s.client.Create(t.Context(), &e); err != nil {
			t.Fatal(err)
		}
	}
	told, note := allEvents(t.Context(), s.client, healthy().Cluster)
	if len(told) != 1 || told[0].Reason != "Killing" || told[0].Regarding.Name != "demo-1" || note != "" {
		t.Errorf("%d events are shown: %+v %s", len(told), told, note)
	}
}

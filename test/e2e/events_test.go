//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// events are those of the world's namespace.
func (w *world) events() []corev1.Event {
	w.t.Helper()
	var list corev1.EventList
	if err := bed.Client.List(w.ctx, &list, client.InNamespace(w.key.Namespace)); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// eventSays waits until an event with that reason is told, since this test began. What an earlier
// step was told does not count: client-go makes another event of the same reason when the Cluster
// was written in between.
func (w *world) eventSays(reason string) {
	w.t.Helper()
	err := wait.PollUntilContextTimeout(w.ctx, 200*time.Millisecond, 20*time.Second, true,
		func(context.Context) (bool, error) {
			return slices.ContainsFunc(w.events(), func(e corev1.Event) bool {
				return e.Reason == reason && w.told[e.UID] != e.ResourceVersion
			}), nil
		})
	if err != nil {
		var seen []string
		for _, e := range w.events() {
			seen = append(seen, fmt.Sprintf("%s (%s): %s", e.Reason, e.ResourceVersion, e.Message))
		}
		w.t.Errorf("no event with reason %s since %s:\n%s", reason, w.since.Format(time.TimeOnly),
			strings.Join(seen, "\n"))
	}
}

// Package tell makes events of Kubernetes out of what is told to users. It knows what the API
// server takes for one; it must not know what is told, or when.
package tell

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"cnmsql.co/internal/core"
)

// noteLimit is how many bytes the note of an event may have: the API server refuses a longer one,
// and nobody sees the event.
const noteLimit = 1024

// Event makes an event about an object.
func Event(to events.EventRecorder, about runtime.Object, e core.Event) {
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	to.Eventf(about, nil, kind, string(e.Reason), string(e.Reason), "%s", note(e.Message))
}

// note is a message as long as it may be.
func note(message string) string {
	const more = "…"
	if len(message) <= noteLimit {
		return message
	}
	return strings.ToValidUTF8(message[:noteLimit-len(more)], "") + more
}

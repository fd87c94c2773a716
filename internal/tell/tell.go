// Package tell makes events of Kubernetes out of what is told to users, and cuts what is too long. It
// knows what the API server takes for an event; it must not know what is told, or when.
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
	to.Eventf(about, nil, kind, string(e.Reason), string(e.Reason), "%s", Within(noteLimit, e.Message))
}

// Within is a message of at most so many bytes: the beginning of one that is longer.
func Within(limit int, message string) string {
	const more = "…"
	if len(message) <= limit {
		return message
	}
	return strings.ToValidUTF8(message[:limit-len(more)], "") + more
}

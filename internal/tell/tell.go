// Package tell makes events of Kubernetes out of what is told to users, and cuts what is too long. It
// knows what the API server takes for an event; it must not know what is told, or when.
package tell

import (
	"crypto/sha256"
	"fmt"
	"regexp"
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
	note := Within(noteLimit, e.Message)
	to.Eventf(about, nil, kind, string(e.Reason), action(e.Reason, note), "%s", note)
}

// action is one for each text. The recorder takes events that are alike in all but their text for one
// that is repeated, counts it, and shows the first text only: of three instances that are made in one
// look, one would be told. Addresses make no other text: an error has another port of this end each time.
func action(reason core.Reason, note string) string {
	sum := sha256.Sum256([]byte(WithoutAddresses(note)))
	return fmt.Sprintf("%s-%x", reason, sum[:4])
}

var addresses = regexp.MustCompile(`(https?://)?(\d+(\.\d+){3}|\[[0-9a-fA-F:.]+\])(:\d+)?`)

// WithoutAddresses is a text with "it" in place of each IP address, with its port and scheme: some are others
// each time that the same error comes.
func WithoutAddresses(text string) string { return addresses.ReplaceAllString(text, "it") }

// Within is a message of at most so many bytes: the beginning of one that is longer.
func Within(limit int, message string) string {
	const more = "…"
	if len(message) <= limit {
		return message
	}
	return strings.ToValidUTF8(message[:limit-len(more)], "") + more
}

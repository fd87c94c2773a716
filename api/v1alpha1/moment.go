package v1alpha1

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Moment is a metav1.MicroTime that people may write: it reads any fraction of a second, or none, which
// metav1.MicroTime refuses.
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:Format=date-time
type Moment struct{ metav1.MicroTime }

// UnmarshalJSON reads a time as RFC 3339 has it.
func (m *Moment) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, []byte("null")) {
		m.Time = time.Time{}
		return nil
	}
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return fmt.Errorf("a time is a string: %w", err)
	}
	t, err := time.Parse(time.RFC3339Nano, strings.ToUpper(text))
	if err != nil {
		return fmt.Errorf("a time is written as 2026-11-26T14:00:00Z: %w", err)
	}
	m.Time = t.Local()
	return nil
}

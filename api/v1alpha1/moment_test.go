package v1alpha1

import (
	"encoding/json"
	"testing"
	"time"
)

// TestAMomentIsReadAsPeopleWriteIt holds which times of a wish for another primary are read: a Cluster whose status
// cannot be read is left alone, failovers included.
func TestAMomentIsReadAsPeopleWriteIt(t *testing.T) {
	at := time.Date(2026, 11, 26, 14, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"2026-11-26T14:00:00Z":           at,
		"2026-11-26t14:00:00z":           at,
		"2026-11-26T15:00:00+01:00":      at,
		"2026-11-26T14:00:00.250Z":       at.Add(250 * time.Millisecond),
		"2026-11-26T14:00:00.000001Z":    at.Add(time.Microsecond),
		"2026-11-26T14:00:00.123456789Z": at.Add(123456789 * time.Nanosecond),
	} {
		var s ClusterStatus
		err := json.Unmarshal([]byte(`{"targetPrimary":"c-2","targetPrimaryTimestamp":"`+text+`"}`), &s)
		if err != nil || !s.TargetPrimaryTimestamp.Time.Equal(want) {
			t.Errorf("%s: %v, %v", text, s.TargetPrimaryTimestamp, err)
		}
		written, err := json.Marshal(s.TargetPrimaryTimestamp)
		if len(written) != len(`"2026-11-26T14:00:00.000000Z"`) || err != nil {
			t.Errorf("%s is written as %s, %v", text, written, err)
		}
	}
	var s ClusterStatus
	if err := json.Unmarshal([]byte(`{"targetPrimaryTimestamp":"now"}`), &s); err == nil {
		t.Error("a word is read as a time")
	}
	if err := json.Unmarshal([]byte(`{"targetPrimaryTimestamp":null}`), &s); err != nil {
		t.Error(err)
	}
}

package operator

import (
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/events"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// TestWhatBecomesOfTheArchiveIsToldOnce: by an event for each change, though
// the operator looks again and again, and the words of a failure change.
func TestWhatBecomesOfTheArchiveIsToldOnce(t *testing.T) {
	c, now := aCluster(), time.Now()
	c.Spec.Backup = &v1alpha1.BackupDefaults{ObjectStore: someStore,
		ContinuousArchiving: &v1alpha1.ContinuousArchivingSpec{Enabled: true}}
	recorder := &events.FakeRecorder{Events: make(chan string, 9)}
	r := operatorOf(t, newFlaky(t, c, storeSecret(), aPod("c-1", "first", "n1")))
	r.Recorder = recorder
	says := func(a *core.Archive, wanted ...string) {
		t.Helper()
		for range 2 {
			o := core.Observation{Now: now, Instances: []core.Instance{{Name: "c-1",
				Report: core.Known(core.Report{WritableEpoch: 1, Archive: a}, now, now)}}}
			_, err := r.publish(quietly(t), &c, o, core.Plan{}, true)
			must(t, err)
		}
		var told []string
		for len(recorder.Events) > 0 {
			told = append(told, <-recorder.Events)
		}
		if len(told) != len(wanted) {
			t.Errorf("told are %q, wanted %q", told, wanted)
			return
		}
		for i, beginning := range wanted {
			if !strings.HasPrefix(told[i], beginning) {
				t.Errorf("told is %q, wanted %q", told[i], beginning)
			}
		}
	}
	full := core.Archive{Failure: "StoreFull", Message: "full at 7", FailedAt: now}
	says(nil) // nobody archives yet
	says(&core.Archive{Place: "s3://a"}, "Normal Archiving the primary archives")
	says(&core.Archive{Place: "s3://a", File: "binlog.000002", At: now}) // a part more
	says(&full, "Warning StoreFull nothing is archived: full at 7")
	again := full
	again.Message = "full at 8"
	says(&again) // in other words
	again.FailedAt = now.Add(time.Hour)
	says(&again) // and for long
	if is := c.Status.ContinuousArchiving; is.LastFailureMessage != "full at 8" {
		t.Errorf("after an hour the status tells of %q", is.LastFailureMessage)
	}
	says(&core.Archive{Place: "s3://a", Missing: "a:1-5"}, "Warning ArchiveGap the archive lacks a:1-5")
	says(nil) // the next primary has only begun
	says(&full, "Warning StoreFull nothing is archived: full at 7")
	says(&core.Archive{Place: "s3://b"}, "Warning ArchiveMoved the archive is in s3://b now")
}

package core

import (
	"testing"
	"time"
)

// TestAPrimaryThatWasReplacedTellsNothingOfTheArchive though it takes writes for a moment when it is back, and is the
// first of all instances.
func TestAPrimaryThatWasReplacedTellsNothingOfTheArchive(t *testing.T) {
	now := time.Now()
	takes := func(name string, epoch int64, missing string) Instance {
		r := Report{WritableEpoch: epoch, Archive: &Archive{Missing: missing}}
		return Instance{Name: name, Report: Known(r, now, now)}
	}
	behind := Instance{Name: "c-2", Report: Known(Report{WritableEpoch: 2}, now, now)}
	o := Observation{Instances: []Instance{takes("c-1", 1, "a:1-5"), behind}}
	if a := o.Archive(); a != nil {
		t.Errorf("before the successor has said anything: %+v", a)
	}
	o = Observation{Instances: []Instance{takes("c-1", 1, "a:1-5"), takes("c-2", 2, ""),
		takes("c-3", 1, "a:1-5")}}
	if a := o.Archive(); a == nil || a.Missing != "" {
		t.Errorf("%+v", a)
	}
}

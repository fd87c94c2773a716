package draft

import (
	"slices"
	"testing"
	"time"

	"cnmsql.co/internal/core"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func newDraft(before core.Status) *Draft {
	d := New(&core.Observation{Now: noon, Cluster: core.Cluster{Name: "c", Wanted: 2, Status: before}})
	return &d
}

func conclude(d *Draft, problem, situation string) string {
	d.Conclude(problem, situation)
	return d.Status.Reason
}

func TestTheFirstHindranceStandsAndIsAnEventOnce(t *testing.T) {
	d := newDraft(core.Status{})
	d.Doing("something is done")
	d.Block("First", "a wall")
	d.Block("Second", "a ditch")
	if got := conclude(d, "a problem", "all is well"); got != "a wall" {
		t.Errorf("said %q", got)
	}
	if len(d.Events) != 1 || d.Events[0].Reason != "First" || !d.Events[0].Warning {
		t.Errorf("told %v", d.Events)
	}
	if b := d.Status.Blocked; b == nil || b.Reason != "First" || b.Message != "a wall" || b.Since != noon {
		t.Errorf("blocked by %v", b)
	}
	d = newDraft(core.Status{Phase: core.PhaseBlocked, Blocked: &core.Notice{Reason: "First", Message: "a wall",
		Since: noon.Add(-time.Hour)}})
	d.Block("First", "a higher wall")
	if conclude(d, "", ""); len(d.Events) > 0 {
		t.Errorf("told again: %v", d.Events)
	}
	if b := d.Status.Blocked; b.Message != "a higher wall" || b.Since != noon.Add(-time.Hour) {
		t.Errorf("blocked by %v", b)
	}
	d = newDraft(d.Status)
	d.Block("Second", "a ditch")
	if conclude(d, "", ""); len(d.Events) != 1 || d.Status.Blocked.Since != noon {
		t.Errorf("of another, told %v, and %v stands", d.Events, d.Status.Blocked)
	}
	if conclude(newDraft(d.Status), "", ""); newDraft(d.Status).Status.Blocked == nil {
		t.Error("it is taken back before anything is concluded")
	}
}

func TestWhatFailedIsToldAfterHowThingsStand(t *testing.T) {
	d := newDraft(core.Status{})
	d.Cluster.Failed = "mend it"
	if got := conclude(d, "", "all is well"); got != "all is well; could not mend it; it is tried again" {
		t.Errorf("said %q", got)
	}
	if got := conclude(d, "c-1 crashes", "all is well"); got != "c-1 crashes; could not mend it; it is tried again" {
		t.Errorf("said %q", got)
	}
}

func TestWhatIsAnnouncedStandsBesideWhatIsDone(t *testing.T) {
	d := newDraft(core.Status{Notices: []core.Notice{{Reason: "Known", Subject: "c-1", Message: "in other words",
		Since: noon.Add(-time.Hour)}}})
	d.Announce(false, "Known", "c-1", "known news")
	d.Announce(true, "Known", "c-2", "fresh news")
	if len(d.Events) != 1 || d.Events[0].Message != "fresh news" {
		t.Errorf("told %v", d.Events)
	}
	if got := conclude(d, "a problem", "all is well"); got != "known news; fresh news" {
		t.Errorf("said %q", got)
	}
	d.Doing("something is done")
	d.Doing("something else is done")
	if got := conclude(d, "a problem", "all is well"); got != "something is done; known news; fresh news" {
		t.Errorf("said %q", got)
	}
}

// What would be deleted is named by its UID, and whether a volume is kept depends on what it is.
func TestNothingIsRemovedBeforeItIsKnownWhatThereIs(t *testing.T) {
	pod := core.Known(core.Pod{Exists: true, UID: "pod-3"}, noon, noon)
	volume := core.Known(core.Volume{Exists: true, UID: "volume-3", Bound: true}, noon, noon)
	for name, c := range map[string]struct {
		pod    core.Fact[core.Pod]
		volume core.Fact[core.Volume]
		want   int
	}{
		"both are known":          {pod, volume, 1},
		"its volume is not known": {pod, core.Fact[core.Volume]{}, 0},
		"its Pod is not known":    {core.Fact[core.Pod]{}, volume, 0},
	} {
		d := newDraft(core.Status{InstanceNames: []string{"c-1", "c-2", "c-3"}})
		isNew := d.RemoveInstance(&core.Instance{Name: "c-3", Pod: c.pod, Volume: c.volume})
		if len(d.Effects) != c.want || isNew != (c.want > 0) || len(d.Status.InstanceNames) != 3-c.want {
			t.Errorf("%s: %v, %v: %s", name, d.Effects, d.Status.InstanceNames, conclude(d, "", ""))
		}
	}
}

func TestTheSoonestMomentIsLookedAtAgainAndNoneOfThePast(t *testing.T) {
	d := newDraft(core.Status{})
	d.RecheckAt(noon.Add(time.Minute))
	d.RecheckAt(noon.Add(time.Hour))
	if d.Recheck != time.Minute {
		t.Errorf("looks again in %s", d.Recheck)
	}
	d.RecheckAt(noon.Add(-time.Minute))
	if d.Recheck != time.Millisecond {
		t.Errorf("looks again in %s", d.Recheck)
	}
}

func TestADraftChangesNothingOfTheStatusBefore(t *testing.T) {
	before := core.Status{InstanceNames: []string{"c-1", "c-2"}, Fenced: []string{"c-1"},
		Promotion: &core.Promotion{Epoch: 1}, Operation: &core.Operation{To: "c-2"}}
	d := newDraft(before)
	d.RemoveInstance(&core.Instance{Name: "c-1"})
	d.Unfence("c-1", "")
	d.Status.Promotion.Epoch, d.Status.Operation.To = 2, "c-1"
	if !slices.Equal(before.InstanceNames, []string{"c-1", "c-2"}) || !slices.Equal(before.Fenced, []string{"c-1"}) ||
		before.Promotion.Epoch != 1 || before.Operation.To != "c-2" {
		t.Errorf("it is %+v now", before)
	}
}

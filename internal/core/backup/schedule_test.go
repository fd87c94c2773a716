package backup

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// day is when the stories begin: midnight.
var day = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

// every has a slot at every multiple of a duration.
func every(d time.Duration) func(time.Time) time.Time {
	return func(t time.Time) time.Time { return t.Truncate(d).Add(d) }
}

func never(time.Time) time.Time { return time.Time{} }

// world is a schedule and what became of it.
type world struct {
	Schedule
	made []string // every Backup that was ever made, in order
}

// aWorld of a schedule that has a slot at every hour, and was just made.
func aWorld() *world {
	return &world{Schedule: Schedule{Name: "s", Now: day, Created: day, Next: every(time.Hour)}}
}

// look carries out as many steps of what is decided as a crash leaves; 3 are all.
func (w *world) look(steps int) SchedulePlan {
	plan := Decide(w.Schedule)
	if steps > 0 && plan.Create != nil {
		w.made = append(w.made, plan.Create.Name)
		w.Backups = append(w.Backups, Made{Name: plan.Create.Name, Created: w.Now})
	}
	if steps > 1 {
		w.Status = plan.Status
	}
	if steps > 2 {
		w.Backups = slices.DeleteFunc(w.Backups, func(b Made) bool { return slices.Contains(plan.Delete, b.Name) })
	}
	return plan
}

func (w *world) at(clock string) *world {
	d, err := time.ParseDuration(clock)
	if err != nil {
		panic(err)
	}
	w.Now = day.Add(d)
	return w
}

// end has all Backups end.
func (w *world) end(o Outcome) *world {
	for i := range w.Backups {
		if w.Backups[i].Outcome == Unfinished {
			w.Backups[i].Outcome = o
		}
	}
	return w
}

// expect holds the times of the Backups that were made against those that are wanted.
func (w *world) expect(t *testing.T, clocks ...string) {
	t.Helper()
	var got []string
	for _, name := range w.made {
		got = append(got, strings.TrimPrefix(name, "s-20261121"))
	}
	if !slices.Equal(got, clocks) {
		t.Fatalf("made are %v, not %v; status %+v", got, clocks, w.Status)
	}
}

func reasons(p SchedulePlan) string {
	var names []string
	for _, e := range p.Events {
		names = append(names, string(e.Reason))
	}
	return strings.Join(names, " ")
}

func TestASlotIsMadeWhenItComesAndOnce(t *testing.T) {
	w := aWorld()
	if p := w.look(3); p.Wake != lookAgain || !p.Status.Next.Equal(day.Add(time.Hour)) {
		t.Fatalf("%+v", p)
	}
	w.at("59m58s500ms")
	if p := w.look(3); p.Wake != 1500*time.Millisecond {
		t.Errorf("wakes after %s", p.Wake)
	}
	w.at("1h").look(3)
	w.expect(t, "010000")
	if p := w.end(Completed).at("1h1s").look(3); p.Create != nil || len(p.Events) > 0 || p.Status != w.Status {
		t.Errorf("%+v", p)
	}
	w.at("2h").look(3)
	w.expect(t, "010000", "020000")
}

func TestMissedSlotsCollapseIntoTheNewest(t *testing.T) {
	w := aWorld()
	w.look(3)
	w.at("5h30m").look(3)
	w.end(Failed).look(3)
	w.expect(t, "050000")
	if !w.Status.Next.Equal(day.Add(6 * time.Hour)) {
		t.Errorf("next is %s", w.Status.Next)
	}
}

func TestSlotsMissedBeforeTheFirstLookAreMadeUpFor(t *testing.T) {
	w := aWorld()
	w.at("2h10m").look(3)
	w.expect(t, "020000")
}

func TestARunningBackupHoldsBackTheNextOne(t *testing.T) {
	w := aWorld()
	w.look(3)
	w.at("1h").look(3)
	p := w.at("2h").look(3)
	if reasons(p) != "BackupHeldBack" || p.Wake != lookAgain ||
		!strings.Contains(p.Status.Problem, "s-20261121010000") {
		t.Errorf("%+v", p)
	}
	for _, later := range []string{"2h5m", "3h", "4h10m"} {
		if p := w.at(later).look(3); len(p.Events) > 0 || p.Status != w.Status {
			t.Errorf("at %s it is told again: %+v", later, p)
		}
	}
	w.expect(t, "010000")
	if p := w.end(Completed).look(3); reasons(p) != "BackupScheduled" || p.Status.Problem != "" {
		t.Errorf("%+v", p)
	}
	w.end(Completed).look(3)
	w.expect(t, "010000", "040000")
}

func TestWhatIsMissedWhileSuspendedIsNotMadeUpFor(t *testing.T) {
	w := aWorld()
	w.look(3)
	w.Suspended = true
	if p := w.at("30m").look(3); !p.Status.Next.IsZero() || p.Wake != 0 {
		t.Errorf("%+v", p)
	}
	w.at("3h30m").look(3)
	w.Suspended = false
	w.at("3h40m").look(3)
	w.expect(t)
	w.at("4h").look(3)
	w.expect(t, "040000")
}

func TestOneThatIsMadeSuspendedRemembersIt(t *testing.T) {
	w := aWorld()
	w.Suspended, w.Immediate = true, true
	w.look(3)
	w.Suspended = false
	w.at("3h30m").look(3)
	w.expect(t)
}

func TestImmediateMakesOneAtCreation(t *testing.T) {
	w := aWorld()
	w.Immediate, w.Created = true, day.Add(10*time.Minute)
	w.at("9m").look(3) // the operator's clock is behind
	w.expect(t)
	w.at("10m2s").look(3)
	w.expect(t, "001000")
	w.end(Completed).at("10m9s").look(3)
	w.at("1h").look(3)
	w.expect(t, "001000", "010000")
}

func TestACrashAfterTheImmediateOneWasMadeMakesNoOther(t *testing.T) {
	w := aWorld()
	w.Immediate = true
	w.look(1)
	w.at("1s").look(3)
	w.expect(t, "000000")
	if !w.Status.Next.Equal(day.Add(time.Hour)) {
		t.Errorf("next is %s", w.Status.Next)
	}
}

func TestImmediateIsLostWhileSuspended(t *testing.T) {
	w := aWorld()
	w.Immediate, w.Suspended, w.Invalid = true, true, "no schedule"
	w.look(3)
	w.Suspended, w.Invalid = false, ""
	w.at("1m").look(3)
	w.expect(t)
}

func TestImmediateIsNotLostWhileSomethingIsWrong(t *testing.T) {
	for name, spoil := range map[string]func(w *world){
		"invalid":  func(w *world) { w.Invalid = "no schedule" },
		"never":    func(w *world) { w.Next = never },
		"hindered": func(w *world) { w.Hindered = "no Cluster" },
	} {
		t.Run(name, func(t *testing.T) {
			w := aWorld()
			w.Immediate = true
			spoil(w)
			w.look(3)
			w.at("1m").look(3)
			w.expect(t)
			w.Invalid, w.Hindered, w.Next = "", "", every(time.Hour)
			w.at("2m").look(3)
			w.expect(t, "000000")
		})
	}
}

func TestNoSlotIsOlderThanItsSchedule(t *testing.T) {
	w := aWorld()
	w.Created = day.Add(10 * time.Minute)
	if p := w.at("-10m").look(3); !p.Status.Next.Equal(day.Add(time.Hour)) { // the operator's clock is behind
		t.Errorf("next is %s", p.Status.Next)
	}
}

func TestImmediateThatIsAskedForLaterMakesNone(t *testing.T) {
	w := aWorld()
	w.look(3)
	w.Immediate = true
	w.at("10m").look(3)
	w.expect(t)
}

func TestAnInvalidScheduleIsToldOnceAndMakesNone(t *testing.T) {
	for name, spoil := range map[string]func(w *world){
		"invalid": func(w *world) { w.Next, w.Invalid = nil, "no schedule" },
		"never":   func(w *world) { w.Next = never },
	} {
		t.Run(name, func(t *testing.T) {
			w := aWorld()
			w.look(3)
			spoil(w)
			if p := w.at("30m").look(3); reasons(p) != "ScheduleInvalid" || p.Wake != 0 || p.Status.Problem == "" {
				t.Errorf("%+v", p)
			}
			if p := w.at("90m").look(3); len(p.Events) > 0 || p.Status != w.Status {
				t.Errorf("told again: %+v", p)
			}
			w.Invalid, w.Next = "", every(time.Hour)
			w.at("100m").look(3)
			w.expect(t)
			w.at("2h").look(3)
			w.expect(t, "020000")
		})
	}
}

func TestAHindranceIsToldAndMadeUpFor(t *testing.T) {
	w := aWorld()
	w.look(3)
	w.Hindered = "no Cluster"
	if p := w.at("1h").look(3); reasons(p) != "BackupHeldBack" || p.Wake != lookAgainHindered ||
		p.Status.Problem != "no Cluster" {
		t.Errorf("%+v", p)
	}
	w.at("2h10m").look(3)
	w.Hindered = ""
	w.at("2h20m").look(3)
	w.expect(t, "020000")
}

func TestWhatHindersADueBackupIsNoProblemBefore(t *testing.T) {
	w := aWorld()
	w.HindersDue = "another runs"
	if p := w.at("30m").look(3); p.Status.Problem != "" || len(p.Events) > 0 || p.Wake != lookAgain {
		t.Errorf("%+v", p)
	}
	if p := w.at("1h").look(3); p.Create != nil || reasons(p) != "BackupHeldBack" || p.Wake != lookAgainHindered ||
		p.Status.Problem != "another runs" {
		t.Errorf("%+v", p)
	}
	w.expect(t)
	w.HindersDue = ""
	w.at("1h20m").look(3)
	w.expect(t, "010000")
}

func TestAnEditedScheduleMakesNothingUpFor(t *testing.T) {
	w := aWorld()
	w.Next = every(12 * time.Hour)
	w.look(3)
	w.Next = every(5 * time.Hour)
	w.at("11h").look(3) // 05:00 and 10:00 were no slots when they passed
	w.expect(t)
	if !w.Status.Next.Equal(day.Add(15 * time.Hour)) {
		t.Errorf("next is %s", w.Status.Next)
	}
}

func TestACrashAfterTheBackupWasMadeMakesNoOther(t *testing.T) {
	w := aWorld()
	w.look(3)
	w.at("1h").look(1)
	if p := w.at("1h1m").look(3); p.Create != nil || p.Status.LastBackup != "s-20261121010000" {
		t.Errorf("%+v", p)
	}
	w.expect(t, "010000")
}

func TestABackupIsNotDeletedBeforeItsSlotIsWrittenDown(t *testing.T) {
	w := aWorld()
	none := 0
	w.KeepCompleted = &none
	w.look(3)
	w.at("1h").look(1)
	w.end(Completed).look(3)
	w.look(3)
	w.expect(t, "010000")
	w.at("2h").look(1)
	w.end(Completed).look(3)
	w.look(3)
	w.expect(t, "010000", "020000")
	if len(w.Backups) != 1 || w.Backups[0].Name != "s-20261121020000" {
		t.Errorf("kept are %v", w.Backups)
	}
}

// What tells how the last ones ended are the Backups, and an alert needs one that failed for as long as it is the last.
func TestHowTheLastBackupsEndedIsToldAtALimitOfNone(t *testing.T) {
	w := aWorld()
	none := 0
	w.KeepCompleted, w.KeepFailed = &none, &none
	for i, c := range []struct {
		outcome Outcome
		kept    []string
	}{
		{Failed, []string{"0"}},
		{Failed, []string{"1"}},
		{Completed, []string{"2"}},
		{Completed, []string{"3"}},
		{Failed, []string{"3", "4"}},
		{Unfinished, []string{"3", "4", "5"}},
	} {
		w.Backups = append(w.Backups, Made{Name: fmt.Sprint(i), Outcome: c.outcome,
			Created: day.Add(time.Duration(i) * time.Minute)})
		gone := w.look(0).Delete
		w.Backups = slices.DeleteFunc(w.Backups, func(b Made) bool { return slices.Contains(gone, b.Name) })
		var kept []string
		for _, b := range w.Backups {
			kept = append(kept, b.Name)
		}
		if !slices.Equal(kept, c.kept) {
			t.Errorf("after Backup %d there are %v, want %v", i, kept, c.kept)
		}
	}
}

func TestAClockThatGoesBackMakesNoSlotTwice(t *testing.T) {
	w := aWorld()
	none := 0
	w.KeepCompleted = &none
	w.look(3)
	w.at("5h").look(3)
	w.end(Completed).look(3)
	p := w.at("1h30m").look(3)
	if reasons(p) != "BackupHeldBack" || !strings.Contains(p.Status.Problem, "clock") {
		t.Errorf("%+v", p)
	}
	if !p.Status.Next.Equal(day.Add(6 * time.Hour)) {
		t.Errorf("next is %s", p.Status.Next)
	}
	w.at("5h10m").look(3)
	w.expect(t, "050000")
	if p := w.at("6h").look(3); p.Status.Problem != "" {
		t.Errorf("%+v", p)
	}
	w.expect(t, "050000", "060000")
}

func TestAYearOfMissedSecondsIsLittleWork(t *testing.T) {
	w := aWorld()
	w.Next = every(time.Second)
	w.look(3)
	calls := 0
	w.Next = func(t time.Time) time.Time { calls++; return every(time.Second)(t) }
	w.Now = day.AddDate(1, 0, 0)
	w.look(3)
	if calls > 40 || !slices.Equal(w.made, []string{"s-20271121000000"}) {
		t.Errorf("made are %v, with %d questions", w.made, calls)
	}
}

func TestTheNewestOfEachOutcomeAreKept(t *testing.T) {
	w := aWorld()
	two, one := 2, 1
	w.KeepCompleted, w.KeepFailed = &two, &one
	for i, o := range []Outcome{Failed, Completed, Failed, Completed, Completed, Unfinished, Completed} {
		w.Backups = append(w.Backups, Made{Name: fmt.Sprint(i), Outcome: o,
			Created: day.Add(time.Duration(i) * time.Minute)})
	}
	w.Backups[4].Deleted = true
	if p := w.look(0); !slices.Equal(p.Delete, []string{"1", "0"}) {
		t.Errorf("deleted are %v", p.Delete)
	}
	w.KeepCompleted, w.KeepFailed = nil, nil
	if p := w.look(0); len(p.Delete) > 0 {
		t.Errorf("without limits %v are deleted", p.Delete)
	}
}

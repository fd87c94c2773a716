package verify

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"cnmsql.co/internal/core"
)

var day = time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC)

// world is a Cluster, its copy and the copy's instance, as far as Decide sees them.
type world struct {
	f      Facts
	made   int
	events []core.Event
}

func newWorld() *world {
	return &world{f: Facts{Now: day, Cluster: "db", HasStore: true, HasData: true, Request: "r1"}}
}

// look decides and carries out, as the controller does.
func (w *world) look() Plan {
	p := Decide(w.f)
	w.carryOut(p)
	return p
}

func (w *world) carryOut(p Plan) {
	f := &w.f
	f.Record, f.Trouble = p.Record, p.Trouble
	if p.Create && p.Record.Sample != nil && f.Now.Before(p.Record.SampledAt.Add(f.ArchiveDelay)) {
		panic("the copy is made before what it is to be restored to is archived")
	}
	w.events = append(w.events, p.Events...)
	if f.Slot.Equal(p.Record.Slot) {
		f.Slot = time.Time{}
	}
	if p.TakeRequest {
		f.Request = ""
	}
	if p.Create && !f.Copy.Exists {
		w.made++
		f.Copy = Copy{Exists: true, UID: "uid-" + string(rune('0'+w.made)), Created: f.Now,
			Doing: "the copy is being made"}
	}
	if p.Delete && f.hasCopy() {
		f.Copy.Deleting = true
	}
	f.Now = f.Now.Add(10 * time.Second)
}

// gone: Kubernetes has removed what is being deleted.
func (w *world) gone() {
	if w.f.Copy.Deleting {
		w.f.Copy, w.f.Check = Copy{}, Check{}
	}
}

// until looks until a step is next.
func (w *world) until(t *testing.T, name string) *world {
	t.Helper()
	for range 20 {
		if Name(w.f) == name {
			return w
		}
		w.look()
		w.gone()
	}
	t.Fatalf("%q never comes; it stands at %q with %+v", name, Name(w.f), w.f.Record)
	return nil
}

// restored: the copy takes writes.
func (w *world) restored(t *testing.T) *world {
	t.Helper()
	w.until(t, "restore")
	w.f.Copy.Writable = w.f.Copy.Created.Add(95 * time.Second)
	return w
}

// checked has the instance say what came of its tables.
func (w *world) checked(t *testing.T, c Check) *world {
	t.Helper()
	w.restored(t).until(t, "order the check")
	w.f.Check = c
	w.f.Check.Asked = true
	return w
}

func (w *world) ends(t *testing.T, phase Phase, reason core.Reason, words ...string) {
	t.Helper()
	for range 5 {
		if w.f.Record.Phase.HasEnded() {
			break
		}
		w.look()
	}
	r := w.f.Record
	if r.Phase != phase || r.Reason != reason || r.Ended.IsZero() {
		t.Fatalf("it is %s, %s: %s; want %s, %s", r.Phase, r.Reason, r.Message, phase, reason)
	}
	for _, word := range words {
		if !strings.Contains(r.Message, word) {
			t.Errorf("the message does not say %q: %s", word, r.Message)
		}
	}
	w.look()
	w.gone()
	w.look()
	if w.f.Copy.Exists && !w.f.Copy.Foreign || w.f.Record.Copy != "" || w.f.Request != "" || Name(w.f) != "rest" {
		t.Errorf("it is not over: %q, %+v", Name(w.f), w.f)
	}
	last := w.events[len(w.events)-1]
	if last.Warning != (phase == Failed) || !strings.Contains(last.Message, r.Message) {
		t.Errorf("the last event is %+v", last)
	}
}

func TestABackupThatIsSoundIsFoundSo(t *testing.T) {
	w := newWorld()
	w.checked(t, Check{Tables: 40, Checked: 7, Table: "shop.orders"}).look()
	if r := w.f.Record; r.Phase != Checking || r.Checked != 7 || !strings.Contains(r.Message, "shop.orders is next") {
		t.Errorf("on the way it says %+v", r)
	}
	w.f.Check = Check{Asked: true, Done: true, Tables: 40, Checked: 40,
		BackupID: "b1", RestoredTo: "u:1-9", RestoredToTime: day}
	w.ends(t, Succeeded, "", "b1", "1m35s", "40 tables are sound")
	r := w.f.Record
	if r.RestoreTook != 95*time.Second || r.BackupID != "b1" || r.RestoredTo != "u:1-9" ||
		r.LastSucceeded != r.Ended || r.Request != "r1" {
		t.Errorf("it recorded %+v", r)
	}
	if len(w.events) != 2 || w.events[0].Reason != core.ReasonVerificationStarted ||
		w.events[1].Reason != core.ReasonVerificationSucceeded {
		t.Errorf("it told %+v", w.events)
	}
}

// Every Cluster has a name for its copy that a Cluster may have, and no other Cluster's.
func TestEveryClusterHasANameForItsCopy(t *testing.T) {
	of := map[string]string{}
	for _, name := range []string{"db", strings.Repeat("a", 43), strings.Repeat("a", 44), strings.Repeat("a", 50),
		strings.Repeat("a", 49) + "b", strings.Repeat("a", 33) + strings.Repeat("-", 16) + "c"} {
		copied := CopyName(name)
		if len(copied) > nameLimit || !strings.HasSuffix(copied, "-verify") || strings.Contains(copied, "--") {
			t.Errorf("the copy of %s is %s", name, copied)
		}
		if other, is := of[copied]; is {
			t.Errorf("the copies of %s and of %s are both %s", name, other, copied)
		}
		of[copied] = name
	}
	if of["db-verify"] != "db" {
		t.Errorf("the copies are %v", of)
	}
}

func TestWhatIsWrongIsNamed(t *testing.T) {
	for name, s := range map[string]struct {
		given  func(*testing.T, *world)
		reason core.Reason
		words  []string
	}{
		"no store": {func(_ *testing.T, w *world) { w.f.HasStore = false }, core.VerifyNoStore,
			[]string{"spec.backup.objectStore", "add it"}},
		"another's Cluster": {func(_ *testing.T, w *world) { w.f.Copy = Copy{Exists: true, Foreign: true} },
			core.VerifyNameTaken, []string{"db-verify", "leaves it alone"}},
		"another's Cluster, just made": {func(t *testing.T, w *world) {
			w.until(t, "make the copy")
			w.f.Copy = Copy{Exists: true, Foreign: true}
		}, core.VerifyNameTaken, nil},
		"a refusal of Kubernetes": {func(t *testing.T, w *world) {
			w.until(t, "make the copy")
			w.f.Copy.Refused = "quota exceeded"
		}, core.VerifyCopyRefused, []string{"quota exceeded"}},
		"a deletion": {func(t *testing.T, w *world) {
			w.restored(t)
			w.f.Copy = Copy{}
		}, core.VerifyCopyGone, []string{"was deleted"}},
		"another copy": {func(t *testing.T, w *world) {
			w.restored(t)
			w.f.Copy.UID = "other"
		}, core.VerifyCopyGone, nil},
		"time": {func(t *testing.T, w *world) {
			w.until(t, "restore")
			w.f.Copy.Doing = "restores 7 percent"
			w.look()
			w.f.Now = w.f.Now.Add(DefaultLimit)
		}, core.VerifyTooLong, []string{"6h0m0s", "restores 7 percent"}},
		"a limit of the user's": {func(t *testing.T, w *world) {
			w.f.Limit = time.Minute
			w.until(t, "restore")
			w.f.Now = w.f.Now.Add(time.Minute)
		}, core.VerifyTooLong, []string{"1m0s"}},
		"a check that ends": {func(t *testing.T, w *world) {
			w.checked(t, Check{Error: "CHECK TABLE a.b: the connection was lost", Tables: 3})
		}, core.VerifyNotChecked, []string{"a.b"}},
		"damage": {func(t *testing.T, w *world) {
			w.checked(t, Check{Done: true, Tables: 3, Checked: 3, Damaged: []Finding{{"a.b", "Corrupt"}}})
		}, core.VerifyDamaged, []string{"1 of 3", "a.b (Corrupt)"}},
		"much damage": {func(t *testing.T, w *world) {
			w.checked(t, Check{Done: true, Tables: 30, Damaged: make([]Finding, 12)})
		}, core.VerifyDamaged, []string{"and 2 more"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.f.Record.LastSucceeded = day.Add(-time.Hour)
			s.given(t, w)
			w.ends(t, Failed, s.reason, s.words...)
			if !w.f.Record.LastSucceeded.Equal(day.Add(-time.Hour)) {
				t.Errorf("it forgot the last success: %v", w.f.Record.LastSucceeded)
			}
		})
	}
}

func TestARestoreThatIsRefusedForLongIsGivenUp(t *testing.T) {
	w := newWorld().until(t, "restore")
	began := w.f.Now
	for !w.f.Record.Phase.HasEnded() {
		// Every half minute it is started again, and seems to go on.
		w.f.Copy.Blocked = ""
		if w.f.Now.Sub(began)%(30*time.Second) != 0 {
			w.f.Copy.Blocked = "db-verify-1: ArchiveGap: there is a gap"
		}
		w.look()
		if w.f.Now.Sub(began) > time.Hour {
			t.Fatal("it waits for ever")
		}
	}
	if took := w.f.Now.Sub(began); took < stuckLimit {
		t.Errorf("it was given up after %s", took)
	}
	w.ends(t, Failed, core.VerifyRestoreFailed, "ArchiveGap")
}

func TestTroubleThatPassesIsForgotten(t *testing.T) {
	w := newWorld().until(t, "restore")
	for range 10 {
		w.f.Copy.Blocked = "StoreUnreachable"
		w.look()
		w.f.Now = w.f.Now.Add(10 * time.Minute)
		w.f.Copy.Blocked = ""
		w.look()
	}
	if w.f.Record.Phase != Restoring {
		t.Errorf("it is %+v", w.f.Record)
	}
}

func TestARequestWaitsForWhatHindersIt(t *testing.T) {
	w := newWorld()
	w.f.BackupRunning, w.f.Record.LastSucceeded = "nightly-1", day
	if p := w.look(); p.Record.Phase != Pending || p.Record.Reason != core.VerifyBackupRuns || p.TakeRequest ||
		p.Wake == 0 || !p.Record.LastSucceeded.Equal(day) {
		t.Errorf("it says %+v", p)
	}
	w.f.BackupRunning, w.f.HasData = "", false
	if p := w.look(); p.Record.Reason != core.VerifyNotYet {
		t.Errorf("it says %+v", p.Record)
	}
	w.f.HasData = true
	if p := w.look(); p.Record.Phase != TakingSample || p.Record.Request != "r1" || !p.TakeRequest {
		t.Errorf("it says %+v", p)
	}
	if len(w.events) != 1 {
		t.Errorf("it told %+v", w.events)
	}
}

func TestARequestThatIsTakenBackIsOver(t *testing.T) {
	w := newWorld()
	w.f.BackupRunning = "nightly-1"
	w.look()
	w.f.Request = ""
	p := w.look()
	if p.Record.Phase != Failed || !strings.Contains(p.Record.Message, "taken back") || len(p.Events) != 0 {
		t.Errorf("it says %+v", p)
	}
}

func TestOneRequestIsOneVerification(t *testing.T) {
	w := newWorld()
	p := Decide(w.f)
	w.f.Record = p.Record // the operator ends before it takes the request off
	if p = w.look(); !p.TakeRequest {
		t.Errorf("it says %+v", p)
	}
	w.f.Request = "r2" // somebody else asks meanwhile, and waits
	w.checked(t, Check{Done: true, Tables: 1, Checked: 1}).look()
	if w.f.Request != "r2" {
		t.Error("the second request is lost")
	}
	w.until(t, "begin").look()
	if w.f.Record.Request != "r2" || w.made != 1 {
		t.Errorf("%d were made; it says %+v", w.made, w.f.Record)
	}
	w.checked(t, Check{Done: true, Tables: 1, Checked: 1})
	w.ends(t, Succeeded, "")
}

func TestAClusterThatIsDeletedIsLeftAlone(t *testing.T) {
	w := newWorld().restored(t)
	w.f.Deleted = true
	if p := Decide(w.f); p.Create || p.Delete || p.Order || p.Record != w.f.Record || p.Wake != 0 {
		t.Errorf("it says %+v", p)
	}
}

func TestTheScheduleBeginsOneToo(t *testing.T) {
	w := newWorld()
	w.f.Request, w.f.Slot = "", day
	if p := w.look(); p.Record.Phase != TakingSample || !p.Record.Slot.Equal(day) || p.TakeRequest {
		t.Errorf("it says %+v", p)
	}
}

const uuid = "8f1c0000-0000-0000-0000-000000000000"

var twoTables = Sample{Executed: uuid + ":1-9", Changed: 1, Sums: []Sum{{"shop.a", 2, "1-1"}, {"shop.b", 3, "2-2"}}}

// TestItAlwaysEnds: whatever the copy does and whenever the operator crashes, a verification
// ends in its time, is told once, and leaves nothing behind.
func TestItAlwaysEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		w.f.Limit = 20 * time.Minute
		w.f.Sampler, w.f.ArchiveDelay = rapid.SampledFrom([]string{"", "db-3"}).Draw(t, "sampler"), time.Minute
		chance := func(what string) bool { return rapid.IntRange(0, 9).Draw(t, what) == 0 }
		restores, ends, meddled := !chance("never restored"), !chance("never checked"), chance("meddled with")
		left := 2 // more requests
		for i := 0; i < 1000 &&
			(left > 0 || w.f.Request != "" || !w.f.Record.Phase.HasEnded() || w.f.hasCopy()); i++ {
			c := &w.f.Copy
			switch {
			case restores && c.Exists && c.Writable.IsZero() && chance("writable"):
				c.Writable = w.f.Now
			case chance("blocked"):
				c.Blocked = rapid.SampledFrom([]string{"", "StoreUnreachable"}).Draw(t, "why")
			case ends && w.f.Record.Phase == Checking && chance("checked"):
				w.f.Check = Check{Asked: true, Tables: 2, Done: chance("done"),
					Error: rapid.SampledFrom([]string{"", "lost"}).Draw(t, "error")}
			case left > 0 && chance("asked again"):
				left, w.f.Request = left-1, "more"+string(rune('0'+left))
			case w.f.Record.Phase == TakingSample && chance("sampled"):
				w.f.Sampling = Sampling{Asked: true, Done: chance("sample done"), Sample: twoTables}
			case meddled && chance("somebody deletes it"):
				c.Deleting = c.Exists
			case chance("it is gone"):
				w.gone()
			}
			before := w.f.Record
			w.f.Now = w.f.Now.Add(time.Second)
			p := Decide(w.f)
			if !before.Phase.Runs() && p.Record.Phase.Runs() && w.f.hasCopy() {
				t.Fatalf("it begins while there is a copy: %+v", w.f.Copy)
			}
			if before.Phase.HasEnded() && p.Record.Phase.HasEnded() && len(p.Events) > 0 {
				t.Fatalf("it is told again: %+v", p.Events)
			}
			if p.Create && (c.Exists || !p.Record.Phase.Runs()) {
				t.Fatalf("a copy is made beside another, or for nothing: %+v", p)
			}
			if p.Events != nil && p.Record.Phase.HasEnded() &&
				p.Record.Ended.Sub(p.Record.Started) > w.f.Limit+time.Minute {
				t.Fatalf("it took from %s to %s", p.Record.Started, p.Record.Ended)
			}
			if chance("crash before anything is done") {
				continue
			}
			if chance("crash after the record was written") {
				w.f.Record = p.Record
				continue
			}
			w.carryOut(p)
		}
		if !w.f.Record.Phase.HasEnded() || w.f.hasCopy() && !w.f.Copy.Deleting || w.f.Request != "" {
			t.Fatalf("it does not end: %+v", w.f)
		}
	})
}

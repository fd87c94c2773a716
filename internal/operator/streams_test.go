package operator

import (
	"testing"
	"time"

	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
)

func snapshot(boot string, asked, taken time.Duration) control.Snapshot {
	return control.Snapshot{Asked: asked.Nanoseconds(), Taken: taken.Nanoseconds(), Made: taken.Nanoseconds(), Report: core.Report{Boot: boot}}
}

func TestAReportIsNeverTakenForYoungerThanItCanBe(t *testing.T) {
	begun := time.Now()
	st := &stream{}
	// What a stream says first was read before the stream was asked for.
	st.hear(snapshot("a", 10*time.Second, 9600*time.Millisecond), begun)
	if got, want := st.heard().report.NotBefore(), begun.Add(-400*time.Millisecond); !got.Equal(want) {
		t.Errorf("the first report is %s from the request, want %s", got.Sub(begun), want.Sub(begun))
	}
	st.hear(snapshot("a", 10*time.Second, 11*time.Second), begun)
	if got, want := st.heard().report.NotBefore(), begun.Add(time.Second); !got.Equal(want) {
		t.Errorf("the second report is %s from the request, want %s", got.Sub(begun), want.Sub(begun))
	}
	// An answer that was asked for later, on a quicker way, bounds all the more.
	later := begun.Add(1500 * time.Millisecond)
	st.hear(snapshot("a", 11200*time.Millisecond, 11210*time.Millisecond), later)
	if got, want := st.heard().report.NotBefore(), later.Add(10*time.Millisecond); !got.Equal(want) {
		t.Errorf("the answer is %s from its request, want %s", got.Sub(later), want.Sub(later))
	}
	// And what the stream says after it is not dropped for its looser bound.
	st.hear(snapshot("a", 10*time.Second, 11220*time.Millisecond), begun)
	if got, want := st.heard().report.NotBefore(), later.Add(20*time.Millisecond); !got.Equal(want) {
		t.Errorf("the stream's next report is %s from the request, want %s", got.Sub(later), want.Sub(later))
	}
}

func TestAnOvertakenReportIsDropped(t *testing.T) {
	st := &stream{}
	st.hear(snapshot("a", 5*time.Second, 6*time.Second), time.Now())
	old := snapshot("a", 5*time.Second, 5500*time.Millisecond)
	old.Report.State = core.Stopped
	if st.hear(old, time.Now()) {
		t.Error("a report that was overtaken counts")
	}
	if r, _ := st.heard().report.Get(); r.State == core.Stopped {
		t.Error("a report that was overtaken replaced a younger one")
	}
	restarted := snapshot("b", 0, time.Millisecond)
	restarted.Report.State = core.Starting
	if !st.hear(restarted, time.Now()) {
		t.Error("a restarted manager, whose clock begins anew, is not heard")
	}
}

package core

import (
	"testing"
)

// TestWhatDiagnosesImplyFitsTogether: a primary that takes writes is not said to be stopped.
func TestWhatDiagnosesImplyFitsTogether(t *testing.T) {
	for d := range implications {
		switch {
		case d.IsWell() && !d.EndsCommits(), d.EndsCommits() && !d.TakesWrites():
			t.Errorf("%s is well without taking writes of which the commits end", d)
		case d.IsSteady() && !d.TakesWrites() && d != PrimaryFollows:
			t.Errorf("%s is steady without taking writes", d)
		case d.TakesWrites() && (d.IsStopped() || d.IsFailing() || d.IsUnreachable()):
			t.Errorf("%s takes writes, and is stopped, failing or unreachable", d)
		case d.IsFailing() && !d.IsStopped():
			t.Errorf("%s is to be replaced, and may take writes", d)
		}
	}
	if Diagnosis("").TakesWrites() || Diagnosis("").IsFailing() || Diagnosis("").IsStopped() {
		t.Error("no diagnosis implies something")
	}
}

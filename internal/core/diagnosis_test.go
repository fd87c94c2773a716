package core

import (
	"testing"
)

// TestEveryDiagnosisHasARowOfWhatItImplies holds that none implies nothing only because somebody forgot it. That
// each constant is in the catalogue is tested there.
func TestEveryDiagnosisHasARowOfWhatItImplies(t *testing.T) {
	isKnown := map[Diagnosis]bool{}
	for _, e := range Catalogue() {
		if e.Kind != KindDiagnosis {
			continue
		}
		d := Diagnosis(e.Name)
		isKnown[d] = true
		if _, has := implications[d]; !has {
			t.Errorf("implications has no row of %s: write what it implies, 0 if nothing", d)
		}
	}
	for d := range implications {
		if !isKnown[d] {
			t.Errorf("implications has a row of %s, which is not in the catalogue", d)
		}
	}
}

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
		case d.implies(replaced) && !d.TakesWrites():
			t.Errorf("%s is to be replaced although it takes writes, and takes none", d)
		case d.IsFailing() && !d.IsStopped():
			t.Errorf("%s is to be replaced, and may take writes", d)
		}
	}
	if Diagnosis("").TakesWrites() || Diagnosis("").IsFailing() || Diagnosis("").IsStopped() {
		t.Error("no diagnosis implies something")
	}
}

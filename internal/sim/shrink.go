package sim

import "slices"

// Shrink leaves out faults for as long as the same invariant still fails, and
// tells the story of what is left.
func Shrink(r Result) Result { return shrink(r, &mutation{}) }

func shrink(r Result, mut *mutation) Result {
	faults := r.Faults
	for again := true; again; {
		again = false
		for i := len(faults) - 1; i >= 0; i-- {
			fewer := slices.Delete(slices.Clone(faults), i, i+1)
			v := play(r.Seed, fewer, mut, nil, false).Violation
			if v != nil && v.Invariant == r.Violation.Invariant {
				faults, again = fewer, true
			}
		}
	}
	return play(r.Seed, faults, mut, nil, true)
}

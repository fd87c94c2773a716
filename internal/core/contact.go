package core

import "time"

// FirstContact is how long an operator that has just started waits at most for the first words of a
// cluster's instances.
const FirstContact = time.Second

// Contact is what came of speaking to an instance's manager.
type Contact struct {
	Instance string
	// Begun is when it was first tried.
	Begun time.Time
	// Report is what it says. Answered: it has said something, or it is known why it does not.
	Report   Fact[Report]
	Answered bool
}

// IsFirstContact reports whether an operator that has just started should wait for more words before
// it decides about a cluster of this status: it has heard nobody, or all was well before, and nobody says
// that it is not so any more. Then the cluster would be told to be in trouble for a moment
// because an instance was heard a moment after another. All are those whose Pods run.
func IsFirstContact(s *Status, all []Contact, now time.Time) bool {
	waits, heard, knowsPrimary := false, false, false
	for _, c := range all {
		isPrimary := c.Instance == s.CurrentPrimary
		knowsPrimary = knowsPrimary || isPrimary
		heard = heard || c.Answered
		waits = waits || !c.Answered && now.Sub(c.Begun) < FirstContact
		saysTrouble := func(r Report) bool { return r.hasTrouble(isPrimary) }
		if c.Answered && isPrimary && !c.Report.Known() || c.Report.Is(saysTrouble) {
			return false
		}
	}
	wasWell := s.Diagnosis.IsSteady() && s.Operation == nil && s.TargetPrimary == s.CurrentPrimary
	return waits && (!heard || wasWell && knowsPrimary)
}

// hasTrouble reports whether, by its own report, the primary is none any more, or the instance
// has lost the primary.
func (r Report) hasTrouble(isPrimary bool) bool {
	switch {
	case r.Server == nil:
		return isPrimary
	case r.Server.HasView():
		return !r.Server.Group.IsQuorate()
	case isPrimary:
		return !r.IsPrimary()
	}
	c := r.Server.Replication
	return c != nil && !c.Hears()
}

// Package share decides which steps of an end-to-end test get the Cluster that they share, and before
// which one it is made anew. It knows what a step needs and how the one before it ended, and nothing of
// Kubernetes.
package share

// Need is what a step asks of the Cluster that it shares with the other steps of its story.
type Need struct {
	// Instances it must have; 0 for as many as there are. It is scaled when it has others.
	Instances int32
	// Making: there must be none. The step makes it, and the others get it.
	Making bool
	// Keeping: the step leaves the Cluster as it found it, but for its size; else nobody
	// else gets it.
	Keeping bool
}

// Shared is the Cluster of a story.
type Shared struct {
	// Alone: each step gets one of its own.
	Alone bool
	// Keep: what a step that failed leaves stays, so that no other step is played.
	Keep bool

	over  bool // a step has failed, and what it left stays
	used  bool // something was made
	there bool // a Cluster that the next step can have
}

// Before tells what has to be done for a step that begins: to take away what others have left, and
// to make a Cluster.
func (s *Shared) Before(n Need) (empty, made bool) {
	if s.there && !n.Making && !s.Alone {
		s.there = false // until it is given back
		return false, false
	}
	empty, s.used, s.there = s.used, true, false
	return empty, !n.Making
}

// GivenBack notes that the step has ended, and left the Cluster as it promised: the next one can
// have it if the step keeps it.
func (s *Shared) GivenBack(n Need) { s.there = n.Keeping }

// Failed lets no further step have the Cluster of the step: nobody knows what it is worth.
func (s *Shared) Failed() { s.there, s.over = false, s.Keep }

// IsOver reports whether no further step can be played: it would need what is to stay as it is, or
// would take it away.
func (s *Shared) IsOver() bool { return s.over }

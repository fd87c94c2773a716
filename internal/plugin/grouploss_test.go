package plugin

import (
	"testing"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// expelled is demo-1, which was cut off alone and still calls itself the primary. The others
// went on with demo-2, which the operator saw, and are lost.
func expelled() *Facts {
	f := alone()
	g := f.Cluster.Status.GroupReplication
	g.ViewID, g.PrimaryMember = "17:7", "demo-2"
	f.Cluster.Status.GTIDExecutedByInstance = map[string]string{"demo-1": groupName + ":1-1000",
		"demo-2": groupName + ":1-1100"}
	return f
}

func (s *scene) recoverer() *recoverer { return &recoverer{caller: s.caller} }

const expelledLacks = "demo-1, which would lead the group, lacks " + groupName +
	":1001-1100, which was seen in the group, " +
	"and is in view 17:5, older than 17:7, the last view that was seen; the last primary that was seen is demo-2."

func TestRecoverNamesWhatWasSeenInTheGroupAndIsNotThere(t *testing.T) {
	s := newScene(t, expelled().Cluster, nil).pods()
	s.managers(expelled())
	s.answers("no\n")
	mustFail(t, s.recoverer().recover(t.Context(), time.Second), "nothing was done")
	s.mustSay("As things look from here, the operator would REFUSE (NoSafeSurvivor): the recovery of the quorum was " +
		"refused: " + expelledLacks + " Bring back demo-2, demo-3; or, if what they hold is gone for good and may be " +
		"lost: kubectl cnmsql group recover -n shop demo --accept-data-loss.")
}

func TestRecoverAtALossAcceptsItForThatInstanceAndEpoch(t *testing.T) {
	s := newScene(t, expelled().Cluster, func(s *scene) {
		if got, _ := s.annotation(s.cluster(), v1alpha1.AnnotationAcceptLoss); got != "demo-1@4" {
			s.t.Errorf("accepted: %q", got)
		}
		s.warn(core.ReasonQuorumForced, "as a human requested, demo-1 forces the quorum with demo-1 as the whole "+
			"group")
		s.carryOut(func(st *v1alpha1.ClusterStatus) {
			st.PrimaryEpoch++
			st.GroupReplication.HasQuorum, st.Diagnosis = true, string(core.PrimaryHealthy)
		})
	}).pods()
	s.managers(expelled())
	s.answers("demo\n")
	r := s.recoverer()
	r.accept = true
	if err := r.recover(t.Context(), 5*time.Second); err != nil {
		t.Fatal(err)
	}
	s.mustSay("What may be lost, and WHAT IS KNOWN TO BE:\n  " + expelledLacks)
	s.mustSay("What demo-2, demo-3 hold is NOT KNOWN.")
}

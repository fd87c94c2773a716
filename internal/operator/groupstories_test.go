package operator

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

func replicatesInGroup(c *v1alpha1.Cluster) {
	c.Spec.Replication.Mode = core.TopologyGroup.String()
}

// rebootsItself has the operator reboot the group when all members were lost.
func rebootsItself(c *v1alpha1.Cluster) {
	c.Spec.Replication.GroupReplication = &v1alpha1.GroupReplicationSpec{
		RecoverTotalOutage: v1alpha1.TotalOutageAutomatic}
}

// groupStories are those that only a group has.
var groupStories = []story{
	{name: "the primary is lost with its node and its volume", acts: []func(*stage){losesVolume("c-1")},
		loses: only("c-1"), end: func(s *stage) {
			s.expectPrimary("c-2", 1)
			s.expect("the volume is another", s.uidOf("c-1") != s.before.claims["c-1"])
		}},
	{name: "the instance that is removed is the primary", acts: []func(*stage){
		wishes("c-3"), scales(-1, v1alpha1.DeleteVolume)}, loses: only("c-3"), end: func(s *stage) {
		s.expectPrimary("c-1", 2)
		s.expectOnly("c-3")
	}},
	{name: "all members are lost, and the operator reboots the group", of: rebootsItself,
		acts: []func(*stage){losesPower}, end: func(s *stage) {
			s.expectPrimary("c-1", 1)
			s.expectMade(2)
		}},
	{name: "all members are lost, and a human has the group rebooted", acts: []func(*stage){losesPower, recovers},
		end: func(s *stage) {
			s.expectPrimary("c-1", 1)
			s.expectMade(2)
		}},
	{name: "most members are lost, and a human has the last one go on", acts: []func(*stage){losesMost, recovers},
		end: func(s *stage) {
			s.expectPrimary("c-1", 1)
			s.expectMade(1)
		}},
}

// losesVolume is a node that is gone with the volumes on it, whose claim a user then deletes.
func losesVolume(instance string) func(*stage) {
	return func(s *stage) {
		losesNode(instance)(s)
		s.delete(s.claimOf(instance))
	}
}

// losesPower is the end of all nodes, a moment after a commit that c-3 has not received.
func losesPower(s *stage) {
	s.group.write(s, "c-3")
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		losesNode(name)(s)
	}
}

// losesMost is the end of all nodes but the primary's.
func losesMost(s *stage) {
	s.group.write(s, "c-3")
	losesNode("c-2")(s)
	losesNode("c-3")(s)
}

// recovers is a human who wants the group to go on from what is left of it, and asks again where nothing came of it:
// the order to go on is given once, and an operator that dies before it has not given it.
func recovers(s *stage) {
	for times := 0; !s.group.hasQuorum(s) && times < 2; times++ {
		s.askedAgain = int64(times)
		s.change(func(c *v1alpha1.Cluster) {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1alpha1.AnnotationForceQuorum,
				"now@"+c.Status.GroupReplication.ViewID)
		})
		s.untilQuiet()
	}
}

// expectMade wants the group to have been made so often, the first time included.
func (s *stage) expectMade(times int) {
	s.Helper()
	if s.group.made != times {
		s.Errorf("the group was made %d times", s.group.made)
	}
}

package resources

import (
	"testing"

	"cnmsql.co/api/v1alpha1"
)

// N − ⌊N/2⌋ − 1, so that those who stay are a majority. A group of one would allow none,
// and hold up every drain for ever; it has no majority to lose, and allows its one.
func TestEvictionsLeaveAGroupItsMajority(t *testing.T) {
	for instances, want := range map[int32]int32{1: 1, 2: 0, 3: 1, 4: 1, 5: 2, 6: 2, 7: 3, 8: 3, 9: 4} {
		c := cluster(t, "group")
		c.Spec.Instances = instances
		got := instances - DisruptionBudget(c).Spec.MinAvailable.IntVal
		if got != want {
			t.Errorf("of %d, %d may be evicted, and not %d", instances, got, want)
		}
		if instances > 1 && 2*(instances-got) <= instances {
			t.Errorf("the %d that stay of %d are no majority", instances-got, instances)
		}
	}
}

func TestOneInstanceThatIsNoMemberMayBeEvictedAtATime(t *testing.T) {
	for _, mode := range []string{v1alpha1.ReplicationAsync, ""} { // "": made before there were groups
		for instances := int32(1); instances <= 9; instances++ {
			c := cluster(t, "minimal")
			c.Spec.Replication.Mode, c.Spec.Instances = mode, instances
			if got := instances - DisruptionBudget(c).Spec.MinAvailable.IntVal; got != 1 {
				t.Errorf("mode %q: of %d, %d may be evicted", mode, instances, got)
			}
		}
	}
}

// A lower spec.instances takes nobody away at once: until then all of them are members.
func TestEvictionsCountFromWhoIsThere(t *testing.T) {
	for mode, want := range map[string]int32{"group": 3, "minimal": 4} {
		c := cluster(t, mode)
		c.Spec.Instances, c.Status.InstanceNames = 3, []string{"db-1", "db-2", "db-3", "db-4", "db-5"}
		if got := DisruptionBudget(c).Spec.MinAvailable.IntVal; got != want {
			t.Errorf("%s: 5 are to become 3, and %d have to stay, not %d", mode, got, want)
		}
	}
}

func TestAUserMayWantNoBudgetForAGroup(t *testing.T) {
	c := cluster(t, "group")
	c.Spec.EnablePDB = new(false)
	if got := DisruptionBudget(c); got != nil {
		t.Errorf("there is one: %v", got.Spec)
	}
}

package operator

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/internal/resources"
)

// role is the Role of c-1 as it is.
func role(t *testing.T, a *api) *rbacv1.Role {
	t.Helper()
	r := &rbacv1.Role{}
	must(t, a.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: resources.Role(aCluster(), "c-1").Name}, r))
	return r
}

func TestAnObjectIsComparedOnceForEachOfItsVersionsAndWishes(t *testing.T) {
	a, c := newAPI(t), aCluster()
	p := newPrerequisites(a, a)
	apply := func() {
		t.Helper()
		must(t, p.apply(t.Context(), c, resources.Role(c, "c-1")))
	}
	apply() // makes it
	apply() // finds it
	found := role(t, a)
	as, err := settlementOf(found, resources.Role(c, "c-1"))
	must(t, err)
	if !p.settled.has(c, as) {
		t.Fatal("what was found to be as it should be is not known")
	}

	found.Rules = nil
	must(t, a.Update(t.Context(), found))
	broken, err := settlementOf(role(t, a), resources.Role(c, "c-1"))
	must(t, err)
	p.settled.note(c, broken)
	apply()
	if len(role(t, a).Rules) != 0 {
		t.Error("an object of a known version is compared again")
	}
	p.settled.note(c, as) // which is of another version
	apply()
	if len(role(t, a).Rules) == 0 {
		t.Error("an object that was changed is not mended")
	}

	apply()
	wished := resources.Role(c, "c-1")
	wished.Rules = wished.Rules[1:]
	must(t, p.apply(t.Context(), c, wished))
	if got := role(t, a).Rules; len(got) != len(wished.Rules) {
		t.Errorf("another wish is not fulfilled: %v", got)
	}
}

func TestWhatIsKnownOfObjectsEndsWithTheirCluster(t *testing.T) {
	a, c := newAPI(t), aCluster()
	p := newPrerequisites(a, a)
	for range 2 {
		must(t, p.apply(t.Context(), c, resources.Role(c, "c-1")))
	}
	if len(p.settled.all) != 1 {
		t.Fatalf("of %d Clusters something is known", len(p.settled.all))
	}
	p.forget(client.ObjectKeyFromObject(c))
	if len(p.settled.all) != 0 {
		t.Error("something is known of a Cluster that is gone")
	}
}

// BenchmarkAnObjectThatIsAsItShouldBe is what the operator does about some twenty objects of
// each cluster every five seconds, but for reading them.
func BenchmarkAnObjectThatIsAsItShouldBe(b *testing.B) {
	c := aCluster()
	found := resources.InstanceService(c, "c-1")
	found.UID, found.ResourceVersion = "1", "1"
	var known settled
	as, err := settlementOf(found, resources.InstanceService(c, "c-1"))
	if err != nil {
		b.Fatal(err)
	}
	known.note(c, as)
	b.Run("compared", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			obj := resources.InstanceService(c, "c-1")
			wanted, err := resources.ForApply(obj)
			if err != nil {
				b.Fatal(err)
			}
			if is, err := isAsWanted(found.DeepCopy(), obj, wanted); !is || err != nil {
				b.Fatal(is, err)
			}
		}
	})
	b.Run("known", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			as, err := settlementOf(found.DeepCopy(), resources.InstanceService(c, "c-1"))
			if err != nil || !known.has(c, as) {
				b.Fatal(err)
			}
		}
	})
}

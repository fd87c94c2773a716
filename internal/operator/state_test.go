package operator

import (
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/api/v1alpha1"
)

func TestWorkTakesAllCores(t *testing.T) {
	s := newClusterStates()
	key := func(i int) types.NamespacedName {
		return types.NamespacedName{Namespace: "ns", Name: strconv.Itoa(i)}
	}
	for i := range few {
		s.of(key(i))
	}
	if s.rest != nil {
		t.Errorf("%d Clusters take all cores", few)
	}
	s.of(key(few))
	if s.rest == nil {
		t.Errorf("%d Clusters take one core", few+1)
	}
	s.of(key(few + 1))
	s.drop(key(0))
	if s.rest == nil {
		t.Errorf("%d Clusters take one core", few+1)
	}
	s.drop(key(1))
	if s.rest != nil {
		t.Errorf("%d Clusters still take all cores", few)
	}
	one := &v1alpha1.Cluster{}
	one.Namespace, one.Name = key(2).Namespace, key(2).Name
	s.noteRest(one, false)
	if s.rest == nil {
		t.Error("a Cluster that is not at rest takes one core")
	}
	s.noteRest(one, true)
	if s.rest != nil {
		t.Error("a Cluster at rest takes all cores")
	}
	s.noteRest(one, false)
	s.drop(key(2))
	if s.rest != nil {
		t.Error("a Cluster that is gone takes all cores")
	}
}

package agent

import (
	"testing"

	"cnmsql.co/internal/core"
)

func TestAStatusOfThePastIsNotTaken(t *testing.T) {
	view := func(epoch int64) *Cluster {
		return &Cluster{Epoch: epoch, Promotion: &core.Promotion{Epoch: epoch, Instance: "c-1"}, CurrentPrimary: "c-1"}
	}
	var l Latest
	two := view(2)
	if got := l.Take(nil, two); got != two || l.Past || l.Epoch != 2 {
		t.Errorf("the first view was not taken: %+v %+v", got, l)
	}
	if got := l.Take(two, view(1)); got != two || !l.Past || l.Epoch != 2 {
		t.Errorf("a view of the past was taken: %+v %+v", got, l)
	}
	three := view(3)
	if got := l.Take(two, three); got != three || l.Past || l.Epoch != 3 {
		t.Errorf("a later view was not taken: %+v %+v", got, l)
	}
	anew := Latest{}
	anew.Recall(3)
	nobody := anew.Take(nil, view(1))
	if !anew.Past || nobody.Promotion != nil || nobody.CurrentPrimary != "" || nobody.Epoch != 3 ||
		!nobody.Established {
		t.Errorf("who remembers a later epoch goes by %+v", nobody)
	}
	if got := anew.Take(nobody, view(2)); got != nobody {
		t.Errorf("and then by %+v", got)
	}
	group := &Cluster{Epoch: 1, Topology: core.TopologyGroup, Group: &Membership{}}
	if got := anew.Take(nobody, group); got != group || anew.Past || anew.Epoch != 3 {
		t.Errorf("a member goes by %+v, and remembers %+v", got, anew)
	}
}

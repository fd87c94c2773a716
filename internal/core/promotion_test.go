package core_test

import (
	"testing"

	"cnmsql.co/internal/core"
)

// TestIsOfReportsWhichPodMayTakeWrites holds that another Pod may on the same node alone, and that two nodes which
// are not known are no match.
func TestIsOfReportsWhichPodMayTakeWrites(t *testing.T) {
	for _, c := range []struct {
		promoted, on, pod, node string
		want                    bool
	}{
		{"a", "n1", "a", "n1", true},
		{"a", "n1", "a", "n2", true},
		{"a", "n1", "b", "n1", true},
		{"a", "n1", "b", "n2", false},
		{"a", "", "b", "", false},
		{"a", "", "a", "", true},
	} {
		p := &core.Promotion{PodUID: c.promoted, Node: c.on}
		if got := p.IsOf(c.pod, c.node); got != c.want {
			t.Errorf("%+v: it is %t", c, got)
		}
	}
}

// TestNodeToWatchIsThatOfThePromotion holds that the promoted instance is watched where it was promoted, and any
// other, or one whose node was not known then, where its Pod is.
func TestNodeToWatchIsThatOfThePromotion(t *testing.T) {
	p := &core.Promotion{Instance: "c-1", Node: "n1"}
	for _, c := range []struct {
		p              *core.Promotion
		instance, want string
	}{{p, "c-1", "n1"}, {p, "c-2", "n2"}, {nil, "c-1", "n2"}, {&core.Promotion{Instance: "c-1"}, "c-1", "n2"}} {
		if got := c.p.NodeToWatch(c.instance, "n2"); got != c.want {
			t.Errorf("%s of %+v: %s is watched, not %s", c.instance, c.p, got, c.want)
		}
	}
}

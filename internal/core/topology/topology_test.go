package topology

import (
	"testing"

	"cnmsql.co/internal/core"
)

func TestEveryTopologyHasWhoDecides(t *testing.T) {
	for _, of := range core.Topologies() {
		if deciders[of] == nil {
			t.Errorf("nobody decides for %s", of)
		}
	}
}

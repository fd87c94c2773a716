package core_test

import (
	"slices"
	"testing"
	"time"

	"cnmsql.co/internal/core"
)

// TestAClusterIsDeletedWithItsNamespaceAlone holds that a namespace of which nothing is known deletes nothing.
func TestAClusterIsDeletedWithItsNamespaceAlone(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		ends core.Fact[bool]
		want []core.Effect
	}{
		"nothing is known of it": {core.Fact[bool]{}, nil},
		"it stays":               {core.Known(false, now, now), nil},
		"it is being deleted":    {core.Known(true, now, now), []core.Effect{core.DeleteCluster{UID: "cluster"}}},
	} {
		if got := core.EndWithNamespace("cluster", c.ends); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

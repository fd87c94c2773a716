package draft

import (
	"slices"
	"testing"

	"cnmsql.co/internal/core"
)

func TestAServiceForWhichNobodyAsksAnyMoreIsDeletedOnce(t *testing.T) {
	d := newDraft(core.Status{})
	d.Cluster.Services = []core.Service{{Name: "c-rw", UID: "1", Wanted: true}, {Name: "c-orders", UID: "2"},
		{Name: "c-reports", UID: "3", Deleting: true}, {Name: "c-ro", UID: "4", Wanted: true, Deleting: true}}
	d.PruneServices()
	if want := []core.Effect{core.DeleteService{Name: "c-orders", UID: "2"}}; !slices.Equal(d.Effects, want) {
		t.Errorf("it does %v", d.Effects)
	}
}

package observed

import (
	"slices"
	"testing"
	"time"

	"cnmsql.co/internal/core"
)

func TestServicesAreToldAndReadBack(t *testing.T) {
	now := time.Now()
	o := core.Observation{Now: now, Cluster: core.Cluster{Name: "c", Services: []core.Service{
		{Name: "c-rw", UID: "1", Wanted: true}, {Name: "c-orders", UID: "2", Deleting: true}}}}
	text := Write(&o)
	if again, err := Read(text, now); err != nil || !slices.Equal(again.Cluster.Services, o.Cluster.Services) {
		t.Errorf("read back are %+v (%v) from\n%s", again.Cluster.Services, err, text)
	}
}

package operator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

func TestPositionsInTheStatusAreBounded(t *testing.T) {
	var text []string
	for i := range 3000 {
		text = append(text, fmt.Sprint(2*i+1))
	}
	long := gtid.MustParse("aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:" + strings.Join(text, ":"))
	short := gtid.MustParse("aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:1-7")
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	o := core.Observation{Now: now, Instances: []core.Instance{
		{Name: "c-1", LastExecuted: core.Known(long, now, now)}, {Name: "c-2", LastExecuted: core.Known(short, now, now)}, {Name: "c-3"}}}
	s := v1alpha1.ClusterStatus{GTIDExecutedByInstance: map[string]string{"c-3": "old", "c-9": "gone"}}
	notePositions(&s, o)
	got := s.GTIDExecutedByInstance
	if len(got) != 3 || got["c-2"] != short.String() || got["c-3"] != "old" || got["c-1"] == "" || len(got["c-1"]) > maxSetText {
		t.Errorf("got %v", got)
	}
	if !s.GTIDExecutedUpdatedAt.Time.Equal(now) {
		t.Errorf("it is of %s", s.GTIDExecutedUpdatedAt)
	}
}

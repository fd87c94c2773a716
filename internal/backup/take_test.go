package backup

import (
	"maps"
	"testing"
)

func TestWhatWasTakenIsRestored(t *testing.T) {
	s, m := taken(t)
	found, err := Read(t.Context(), s, cluster, "monday")
	must(t, err)
	for _, readers := range []int{1, 5} {
		root := directory(t)
		must(t, Restore(t.Context(), s, found, root, RestoreOptions{Server: "9.7.4", Readers: readers}))
		if got, want := contents(t, root), applied(t, scene(4)); !maps.Equal(got, want) || len(want) < 4 {
			t.Errorf("with %d readers, %d files differ from the %d that were taken", readers, len(got), len(want))
		}
	}
	if m.BeginGTID.Count() != 1 || m.EndGTID.Count() != 2 || m.Server != "9.7.4-2" || m.Epoch != 7 || len(m.Parts) < 8 {
		t.Errorf("%+v", m.Summary)
	}
}

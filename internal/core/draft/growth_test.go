package draft

import (
	"slices"
	"testing"
	"time"

	"cnmsql.co/internal/core"
)

func TestOnlyAClaimThatIsKnownToAskForLessGrows(t *testing.T) {
	refused := func(asks int64, ago time.Duration) core.Volume {
		return core.Volume{Exists: true, Asks: asks, Refused: &core.RefusedGrowth{At: noon.Add(-ago),
			Why: "over the quota"}}
	}
	known := func(vol core.Volume) core.Fact[core.Volume] {
		vol.UID = "volume-1"
		return core.Known(vol, noon, noon)
	}
	for name, k := range map[string]struct {
		volume  core.Fact[core.Volume]
		grows   bool
		recheck time.Duration // and the refusal is told as long
	}{
		"it asks for less":          {known(core.Volume{Exists: true, Asks: 1}), true, 0},
		"it asks for as much":       {known(core.Volume{Exists: true, Asks: 2}), false, 0},
		"it asks for more":          {known(core.Volume{Exists: true, Asks: 3}), false, 0},
		"nothing is known of it":    {core.Fact[core.Volume]{}, false, 0},
		"there is none":             {known(core.Volume{}), false, 0},
		"it is being deleted":       {known(core.Volume{Exists: true, Asks: 1, Deleting: true}), false, 0},
		"it was refused just now":   {known(refused(1, 0)), false, time.Minute},
		"it was refused of late":    {known(refused(1, 59*time.Second)), false, time.Second},
		"it was refused before":     {known(refused(1, time.Minute)), true, 0},
		"refused, and asks for all": {known(refused(2, 0)), false, 0},
	} {
		d := newDraft(core.Status{InstanceNames: []string{"c-1"}})
		d.Cluster.VolumeSize = core.Size{Bytes: 2, Text: "2"}
		// The one that is taken away grows no more.
		d.Instances = []core.Instance{{Name: "c-1", Volume: k.volume},
			{Name: "c-2", Volume: known(core.Volume{Exists: true, Asks: 1})}}
		d.GrowVolumes()
		var effects []core.Effect
		var standing []string
		if k.grows {
			effects = []core.Effect{core.GrowVolume{Instance: "c-1", VolumeUID: "volume-1", To: "2"}}
		}
		if k.recheck > 0 {
			standing = []string{"grow the volume of c-1 to 2: over the quota"}
		}
		if !slices.Equal(d.Effects, effects) || !slices.Equal(d.Standing, standing) || d.Recheck != k.recheck {
			t.Errorf("%s: it does %v, tells %q, and looks again in %s", name, d.Effects, d.Standing, d.Recheck)
		}
	}
}

// TestNothingGrowsWhileTheSizeIsNotKnown holds that what cannot be read is no wish.
func TestNothingGrowsWhileTheSizeIsNotKnown(t *testing.T) {
	d := newDraft(core.Status{InstanceNames: []string{"c-1"}})
	d.Instances = []core.Instance{{Name: "c-1", Volume: core.Known(core.Volume{Exists: true}, noon, noon)}}
	if d.GrowVolumes(); len(d.Effects) > 0 {
		t.Errorf("it does %v", d.Effects)
	}
}

package observation

import (
	"slices"
	"testing"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// A request that cannot be read is for no epoch, and what is read is written as it was.
func TestARequestToRecreateDataIsReadAndWritten(t *testing.T) {
	for text, want := range map[string]core.ReinitRequest{
		"c-2":                        {Instance: "c-2"},
		"c-2@3/uid":                  {Instance: "c-2", Epoch: 3, Volume: "uid"},
		"c-2@3/uid/diverged":         {Instance: "c-2", Epoch: 3, Volume: "uid", Diverged: true},
		"c-2@3/uid/unheard":          {Instance: "c-2", Epoch: 3, Volume: "uid", Unheard: true},
		"c-2@3/uid/diverged/unheard": {Instance: "c-2", Epoch: 3, Volume: "uid", Diverged: true, Unheard: true},
		"c-2@":                       {Instance: "c-2", Epoch: -1},
		"c-2@x/uid":                  {Instance: "c-2", Epoch: -1},
		"c-2@3":                      {Instance: "c-2", Epoch: -1},
		"c-2@3/":                     {Instance: "c-2", Epoch: -1},
		"c-2@3/uid/else":             {Instance: "c-2", Epoch: -1},
	} {
		c := &v1alpha1.Cluster{}
		c.Annotations = map[string]string{v1alpha1.AnnotationReinit: text + ", c-3,c-3"}
		got := ReinitWish(c)
		if !slices.Equal(got, []core.ReinitRequest{want, {Instance: "c-3"}}) {
			t.Errorf("%s is read as %+v", text, got)
		}
		if again := ReinitText(got); want.Epoch >= 0 && again != text+",c-3" {
			t.Errorf("%s is written as %s", text, again)
		}
	}
}

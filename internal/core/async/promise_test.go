package async

import (
	"testing"
	"time"

	"cnmsql.co/internal/core"
)

func TestTheLastPromiseCountsWhileItIsKnownThatNoOtherPodTookItsPlace(t *testing.T) {
	now := time.Unix(0, 0)
	word := core.Known(core.Report{Instance: "c-2", PodUID: "pod-2",
		Withheld: &core.Withheld{Below: 2, Seconds: 9}}, now, now)
	pod := func(p core.Pod) core.Fact[core.Pod] { return core.Known(p, now, now) }
	for name, c := range map[string]struct {
		report core.Fact[core.Report]
		pod    core.Fact[core.Pod]
		counts bool
	}{
		"it says so now":            {word, core.Fact[core.Pod]{}, true},
		"its Pod is there":          {core.Fact[core.Report]{}, pod(core.Pod{Exists: true, UID: "pod-2"}), true},
		"its Pod is gone":           {core.Fact[core.Report]{}, pod(core.Pod{}), true},
		"another Pod is there":      {core.Fact[core.Report]{}, pod(core.Pod{Exists: true, UID: "pod-3"}), false},
		"which is there, is unseen": {core.Fact[core.Report]{}, core.Fact[core.Pod]{}, false},
	} {
		in := &core.Instance{Name: "c-2", Pod: c.pod, Report: c.report, Latest: word}
		if _, counts := promisesNotToReceive(in, 2, time.Second); counts != c.counts {
			t.Errorf("%s: the promise counts: %t", name, counts)
		}
	}
}

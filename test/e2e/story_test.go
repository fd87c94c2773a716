//go:build e2e

package e2e

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/test/e2e/share"
)

var alone = flag.Bool("alone", false, "make a Cluster for each step of a story, as if it were played alone by its name")

var (
	nothing = share.Need{Making: true, Keeping: true}
	one     = share.Need{Instances: 1, Keeping: true}
	three   = share.Need{Instances: 3, Keeping: true}
	five    = share.Need{Instances: 5, Keeping: true}
	// The step changes what it cannot set back, or not in less time than making another takes.
	threeForItself = share.Need{Instances: 3}
	anyForItself   = share.Need{}
	// The step goes on where those before it ended (playInTurn).
	thoseBefore = share.Need{}
)

// story is a Cluster and the steps that are played on it, each of which can be played alone. They
// share the Cluster as long as each leaves it healthy and as it was; who needs one that is not there
// has it made.
type story struct {
	*world
	// makes the Cluster of this story, and waits until it is well.
	makes func(*world)
	// isWell waits until the Cluster is as every step may expect it.
	isWell func(*world)

	*share.Shared
	spent time.Duration // on what steps need
}

// newStory begins a story with no Cluster yet: whether one is needed, and when, the steps say.
func newStory(t *testing.T, cluster string, makes func(*world)) *story {
	t.Helper()
	return newNamespace(t, cluster).story(makes, &share.Shared{Alone: *alone, Keep: keep})
}

// handedOn is a Cluster that the stories of several tests share as the steps of one do. They follow one another
// in one file, so that it is in nobody's way.
type handedOn struct {
	name  string
	makes func(*world)

	shared *share.Shared // nil before the first
}

// story is that of another test.
func (h *handedOn) story(t *testing.T) *story {
	t.Helper()
	w := worldOf(t, h.name)
	if h.shared == nil {
		h.shared = &share.Shared{Alone: *alone, Keep: keep}
		w.emptied()
	}
	return w.story(h.makes, h.shared)
}

// lastStory is that of the last test, which takes the Cluster away, unless it is to stay.
func (h *handedOn) lastStory(t *testing.T) *story {
	t.Helper()
	s := h.story(t)
	t.Cleanup(func() {
		if !s.IsOver() {
			s.removed()
			h.shared = nil
		}
	})
	return s
}

func (w *world) story(makes func(*world), shared *share.Shared) *story {
	t := w.t
	s := &story{world: w, makes: makes, isWell: func(w *world) { w.healthy(2 * time.Minute) }, Shared: shared}
	t.Cleanup(func() {
		if t.Failed() {
			w.complain()
		}
		t.Logf("what steps need took %s in all", s.spent.Round(time.Millisecond))
	})
	return s
}

// applies makes a Cluster of that spec.
func applies(spec string) func(*world) {
	return func(w *world) {
		w.apply(spec)
		w.healthy(4 * time.Minute)
	}
}

// play plays each step, whatever became of those before it. One that fails shows what was going
// on, and nobody else gets its Cluster. Where that is to be kept, the story ends there.
func (s *story) play(steps []step) {
	for i, step := range steps {
		if s.IsOver() {
			s.t.Logf("E2E_KEEP: what the step that failed left stays as it is; %d steps after it are not played",
				len(steps)-i)
			return
		}
		s.t.Run(step.name, func(t *testing.T) {
			step.mayBeLeftOut(t)
			w := s.in(t)
			t.Cleanup(func() {
				if t.Failed() {
					w.show()
					s.Failed()
				}
			})
			before := s.prepare(w, step.needs)
			step.play(s.in(t))
			s.getsBack(w, step.needs, before)
		})
	}
}

// prepare sees to what a step needs, and tells what it finds.
func (s *story) prepare(w *world, needs share.Need) *v1alpha1.Cluster {
	w.t.Helper()
	begun, how := time.Now(), "found"
	empty, made := s.Before(needs)
	if empty {
		w.emptied()
	}
	if needs.Making {
		return nil
	}
	if made {
		how = "made"
		s.makes(w)
		s.isWell(w)
	}
	if err := bed.AwaitLeader(w.ctx); err != nil {
		w.t.Fatal(err)
	}
	c := w.cluster()
	if n := needs.Instances; n != 0 && c.Spec.Instances != n {
		how += fmt.Sprintf(" and scaled from %d", c.Spec.Instances)
		w.scale(n)
		s.isWell(w)
		c = w.cluster()
	}
	s.spent += time.Since(begun)
	w.t.Logf("a Cluster of %d was %s in %s", c.Spec.Instances, how, time.Since(begun).Round(time.Millisecond))
	return c
}

// getsBack holds the Cluster against what the step found: the step that leaves another is the one
// that fails, and not the next.
func (s *story) getsBack(w *world, needs share.Need, before *v1alpha1.Cluster) {
	w.t.Helper()
	if !needs.Keeping {
		return
	}
	s.isWell(w)
	if after := w.cluster(); before != nil {
		after.Spec.Instances = before.Spec.Instances
		if after.UID != before.UID || !equality.Semantic.DeepEqual(before.Spec, after.Spec) {
			w.t.Errorf("the step leaves another Cluster than it found:\n%+v\nand before\n%+v", after.Spec, before.Spec)
		}
	}
	s.GivenBack(needs)
}

// scale asks for that many instances.
func (w *world) scale(instances int32) {
	w.t.Helper()
	w.kubectl("-n", w.key.Namespace, "scale", "cluster", w.key.Name, fmt.Sprintf("--replicas=%d", instances))
}

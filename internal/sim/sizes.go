package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"cnmsql.co/internal/core"
)

const sizeRaised = "spec.storage.size is raised"

func init() { faultKinds = append(faultKinds, faultKind{sizeRaised, 0, (*world).raiseSize}) }

// withSizes has the user of one seed in 32 raise the size of volumes twice. It draws by itself.
func withSizes(seed uint64, out []Fault) []Fault {
	if seed%32 != 17 {
		return out
	}
	r := rand.New(rand.NewPCG(seed, 43))
	at := 15*time.Second + time.Duration(r.Int64N(int64(time.Minute)))
	for range 2 {
		out = append(out, Fault{At: at, Kind: sizeRaised, Dice: roll(r)})
		at += gap(r)
	}
	slices.SortStableFunc(out, func(a, b Fault) int { return int(a.At - b.At) })
	return out
}

// raiseSize raises the size of volumes. One time in two there is no quota for it for a while.
func (w *world) raiseSize(d *dice) {
	size := w.api.cluster().spec.size + 1
	if d.upTo(2) == 0 {
		w.noQuota = true
		w.later(d.between(5*time.Second, 3*time.Minute), func() { w.noQuota = false })
	}
	w.tell("spec.storage.size is %s, refused: %t", volumeSize(size).Text, w.noQuota)
	w.editSpec(func(s *clusterSpec) { s.size = size })
}

// volumeSize is a size that is told in gibibytes.
func volumeSize(gibibytes int64) core.Size {
	return core.Size{Bytes: gibibytes << 30, Text: fmt.Sprintf("%dGi", gibibytes)}
}

// growVolume has a claim ask for more, if it is the one that was meant; false when that is refused.
func (a *apiServer) growVolume(e core.GrowVolume) bool {
	v := a.volume(e.Instance)
	if v == nil || v.uid != e.VolumeUID || v.deleting {
		return true
	}
	if a.w.noQuota {
		a.w.cover.count("api", "a growth is refused")
		return false
	}
	var size int64
	if _, err := fmt.Sscanf(e.To, "%dGi", &size); err != nil {
		a.w.fail("model", "%s: %v", e, err)
	}
	a.w.cover.count("api", "a claim asks for more")
	a.updateVolume(e.Instance, func(v *volumeObject) { v.asks = max(v.asks, size) })
	return true
}

// refusedGrowth is one that was refused, and the generation of the spec that it was for.
type refusedGrowth struct {
	core.RefusedGrowth
	generation int64
}

// noteGrowth remembers a growth that was refused. It fails the run when the same was refused a moment ago.
func (op *operator) noteGrowth(e core.Effect, made bool) {
	grow, is := e.(core.GrowVolume)
	if !is || made {
		return
	}
	last, now := op.refused[grow.VolumeUID], op.clock()
	if last.generation == op.generation && now.Sub(last.At) < time.Minute {
		op.w.fail("growth", "%s is asked for again %s after it was refused", e, now.Sub(last.At))
	}
	last = refusedGrowth{core.RefusedGrowth{At: now, Why: "over the quota"}, op.generation}
	op.refused[grow.VolumeUID] = last
	op.failed = e.String() + ": " + last.Why
}

// refusedNow is the growth of a claim that was refused for this generation of the spec; nil when none was.
func (op *operator) refusedNow(claim string, generation int64) *core.RefusedGrowth {
	if last, known := op.refused[claim]; known && last.generation == generation {
		return &last.RefusedGrowth
	}
	return nil
}

// haveGrown reports whether the claims of all instances ask for as much as the spec says.
func (w *world) haveGrown() bool {
	c := w.api.cluster()
	return !slices.ContainsFunc(c.status.InstanceNames, func(name string) bool {
		v := w.api.volume(name)
		return v != nil && v.asks < c.spec.size
	})
}

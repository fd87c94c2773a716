package async

import (
	"slices"
	"strconv"
	"strings"

	"cnmsql.co/internal/core"
)

func (s *script) setVolume(in *inst, key, value string) {
	switch key {
	case "gone":
		s.w.wipe(in)
	case "deleting":
		in.volume.Deleting = true
	case "removed": // its claim, by force: the Pod runs on
		in.volume = core.Volume{}
	case "unbound":
		in.volume.Bound = false
	case "kept":
		in.volume = core.Volume{Exists: true, UID: in.volume.UID, Deleting: true}
		s.w.cluster.KeptVolumes = append(s.w.cluster.KeptVolumes, in.name)
	case "asks":
		size, err := sizeOf(value)
		s.must(err)
		in.volume.Asks = size.Bytes
	case "refused":
		in.volume.Refused = &core.RefusedGrowth{At: s.w.now, Why: value}
	default:
		s.t.Fatalf("unknown volume fact %q", key)
	}
}

// sizeOf reads a number of gibibytes, as "2Gi".
func sizeOf(text string) (core.Size, error) {
	n, err := strconv.ParseInt(strings.TrimSuffix(text, "Gi"), 10, 64)
	return core.Size{Bytes: n << 30, Text: text}, err
}

func (w *world) newVolume(instance string) core.Volume {
	return core.Volume{Exists: true, UID: "volume-" + instance, Bound: true, Asks: w.cluster.VolumeSize.Bytes}
}

// adjust carries out what only the spec asks for, and what a manager is ordered.
func (w *world) adjust(e core.Effect) {
	switch e := e.(type) {
	case core.GrowVolume:
		w.inst(e.Instance).volume.Asks = w.cluster.VolumeSize.Bytes
	case core.DeleteService:
		w.cluster.Services = slices.DeleteFunc(w.cluster.Services, func(s core.Service) bool { return s.UID == e.UID })
	default:
		w.order(e)
	}
}

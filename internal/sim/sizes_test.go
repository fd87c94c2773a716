package sim

import "cnmsql.co/internal/core"

// mutantsOfSizes are mistakes about volumes that are to grow.
func mutantsOfSizes() []mutant {
	return []mutant{
		{name: "a growth that is refused is asked for at each look", seed: 17, mutation: mutation{
			Observe: eachVolume(func(vol *core.Volume) { vol.Refused = nil })}},
		{name: "a growth that was refused is never asked for again", seed: 49, mutation: mutation{
			Observe: func(_ *world, o *core.Observation) {
				eachVolume(func(vol *core.Volume) {
					if vol.Refused != nil {
						vol.Refused = &core.RefusedGrowth{At: o.Now, Why: vol.Refused.Why}
					}
				})(nil, o)
			}}},
	}
}

// eachVolume changes what is known of volumes in an observation.
func eachVolume(change func(*core.Volume)) func(*world, *core.Observation) {
	return func(_ *world, o *core.Observation) {
		for i := range o.Instances {
			in := &o.Instances[i]
			if vol, known := in.Volume.Get(); known {
				change(&vol)
				in.Volume = core.Known(vol, in.Volume.NotBefore(), in.Volume.Received())
			}
		}
	}
}

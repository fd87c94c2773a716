package gtid

// Last holds the highest number of each source.
func (s Set) Last() Set {
	var out Set
	for _, g := range s.groups {
		last := g.intervals[len(g.intervals)-1].last
		out.groups = append(out.groups, group{uuid: g.uuid, tag: g.tag, intervals: []interval{{last, last}}})
	}
	return out
}

// List names the transactions of the set one by one, as GTID_NEXT takes them; false when
// they are more than limit.
func (s Set) List(limit uint64) ([]string, bool) {
	if s.Count() > limit {
		return nil, false
	}
	var out []string
	for _, g := range s.groups {
		for _, iv := range g.intervals {
			for n := iv.first; ; n++ {
				one := Set{groups: []group{{uuid: g.uuid, tag: g.tag, intervals: []interval{{n, n}}}}}
				out = append(out, one.String())
				if n == iv.last {
					break
				}
			}
		}
	}
	return out, true
}

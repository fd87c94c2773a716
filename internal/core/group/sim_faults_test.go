package group

import (
	"fmt"
	"slices"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// fault is one thing that happens; who does not exist is spared.
func (s *sim) fault() {
	if len(s.all) == 0 {
		return
	}
	in := s.all[s.rng.IntN(len(s.all))]
	switch n := s.rng.IntN(32); {
	case n < 4:
		s.tellf("down %s", in.name)
		s.endMysqld(in)
		in.held = true
	case n < 8:
		s.tellf("up all")
		for _, in := range s.all {
			in.held = false
		}
	case n < 10:
		s.tellf("cut %s", in.name)
		in.cut(1)
	case n < 13:
		s.tellf("heal all")
		s.heal()
	case n < 15:
		s.tellf("deaf %s", in.name)
		in.deaf = true
	case n == 15:
		s.tellf("volume of %s gone", in.name)
		s.leave(in.name)
		s.gone[in.name] = true
		s.empty(in)
	case n < 20:
		s.odd(in, n)
	case n >= 30:
		s.powerFails(n == 30)
	case n > 27:
		s.tellf("all are together, and nobody hears them")
		for _, in := range s.all {
			in.cut(1)
		}
	default:
		s.human(in, n)
	}
	s.settle()
}

// odd is what is rarer.
func (s *sim) odd(in *instance, n int) {
	switch {
	case n == 16:
		s.tellf("%s hears nothing of the Cluster", in.name)
		in.blind = true
	case n == 17:
		s.tellf("the container of %s restarts", in.name)
		s.endMysqld(in)
		in.m = manager{stopping: in.m.stopping}
	case n == 18 && in.answers() && !in.joined && in.data == core.DataPopulated:
		s.tellf("somebody writes to %s, which is in no group", in.name)
		in.errant = gtid.MustParse(fmt.Sprintf("22222222-2222-2222-2222-%012d:1", in.ordinal))
	case n == 19 && len(s.view) > 2 && !slices.ContainsFunc(s.all, func(in *instance) bool { return in.lie != nil }):
		s.tellf("%s says that it is the primary of all", in.name)
		in.lie = s.boast(in)
	}
}

// boast is a view in which all are well, and the named one is primary.
func (s *sim) boast(in *instance) *core.GroupView {
	out := &core.GroupView{State: core.MemberOnline, Role: core.MemberPrimary, ViewID: "v:lie"}
	for _, other := range s.all {
		m := core.ViewMember{Host: other.name + ".ns.svc", UUID: "uuid-" + other.name, State: core.MemberOnline,
			Role: core.MemberSecondary, Version: other.version}
		if other == in {
			m.Role = core.MemberPrimary
		}
		out.Members = append(out.Members, m)
	}
	return out
}

func (s *sim) human(in *instance, n int) {
	switch n {
	case 20:
		s.tellf("fence %s", in.name)
		in.pod.FencingRequested = true
	case 21:
		s.tellf("unfence all")
		for _, in := range s.all {
			in.pod.FencingRequested = false
		}
	case 22:
		s.tellf("target %s", in.name)
		s.cluster.Status.TargetPrimary = in.name
	case 23:
		s.cluster.Wanted = 1 + s.rng.IntN(5)
		s.tellf("spec instances=%d", s.cluster.Wanted)
	case 24:
		s.tellf("reinit %s", in.name)
		s.cluster.Reinit = append(s.cluster.Reinit, core.ReinitRequest{Instance: in.name})
	case 25, 26:
		s.forceAlone(in)
	case 27:
		s.tellf("force")
		s.asks()
	}
}

// forceAlone: an instance loses all others, or all but one, and a human has it go on.
func (s *sim) forceAlone(in *instance) {
	with := s.all[s.rng.IntN(len(s.all))]
	s.tellf("all but %s and %s are cut off, and a human forces the quorum", in.name, with.name)
	for n, other := range s.all {
		if other != in && (other != with || len(s.all) < 4) {
			other.cut(n + 1)
		}
	}
	s.cluster.Group.ForceQuorum, s.foresees = true, true
}

func (s *sim) heal() {
	for _, in := range s.all {
		in.heal()
		in.lie = nil
	}
}

// outnumber ends a lie that nobody is left to deny, or of one that is no member any more.
func (s *sim) outnumber() {
	members := 0
	for _, in := range s.all {
		if in.joined {
			members++
		}
	}
	g := s.cluster.Status.Group
	few := members < 3 || g == nil || g.ViewMax < 3
	for _, in := range s.all {
		if few || !in.joined {
			in.lie = nil
		}
	}
}

// stopLeftOut: where those who were left out have a group of their own, a human stops them.
func (s *sim) stopLeftOut() {
	s.stopped = true
	for _, in := range s.all {
		if s.cluster.Status.Group.WentOnWithout(in.name) {
			s.tellf("a human deletes the Pod of %s", in.name)
			s.deletePod(in.name, podDoomed)
		}
	}
}

// giveUp: where nobody holds all that the others hold, or it is not known who went on, a
// human deletes the Pod and volume of one who holds what was written beside the group, or
// lacks what was acknowledged, or of any.
func (s *sim) giveUp() {
	var worst *instance
	with := 0
	for _, in := range s.all {
		if in.data != core.DataPopulated {
			continue
		}
		with++
		if worst == nil || !in.errant.IsEmpty() || worst.errant.IsEmpty() && s.lacksAcked(in.name) != "" {
			worst = in
		}
	}
	if with > 1 {
		s.tellf("a human deletes Pod and volume of %s", worst.name)
		s.gone[worst.name] = true
		s.deletePod(worst.name, dataDoomed)
	}
}

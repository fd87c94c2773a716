package group

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// instance is an instance of the model world: its Pod and volume, its manager, and
// mysqld as a member of the group.
type instance struct {
	name    string
	ordinal int
	pod     core.Pod
	vol     core.Volume
	manager core.Binary
	version string // of its mysqld

	up       bool         // mysqld runs
	starting bool         // and does not answer yet
	joined   bool         // since it was started
	of       core.Lineage // the group that its data was a member of
	left     core.Lineage // the same of a deleted Cluster's, whose volume it has
	data     core.DataState
	executed gtid.Set
	// content tells which transaction the instance holds under a number; the executed set
	// tells numbers only.
	content map[int]int
	// log is its binary log, which begins behind what is purged.
	log      []logged
	dropped  int // how many entries were purged
	purged   gtid.Set
	received gtid.Set
	errant   gtid.Set
	heard    core.Heard
	// viewEpoch is the highest epoch of the Cluster's status, as the volume remembers it.
	viewEpoch int64
	given     bool // data, at some time, on whatever volume
	removed   bool // a clone has removed its data, and did not end
	frozen    int64
	// state is another than ONLINE that the member is in; "" if it is in none.
	state core.MemberState
	part  int  // of the network
	deaf  bool // the operator cannot hear its manager
	blind bool // its manager cannot hear the API server
	held  bool // mysqld cannot be started
	idle  bool // its manager does nothing
	lags  bool // more than the user allows
	// unknown: the API server refuses its token.
	unknown bool
	room    *core.Room
	hangs   bool // its commits wait for space
	taken   bool // its port for the group: it cannot make one
	unfit   bool // it can join none as its Pod was made
	// silentSince is since when its mysqld answers nobody, and stalled, that its volume completes no write;
	// the threads of the group live on. killed: its process waits for the volume, and ends then.
	silentSince time.Time
	stalled     bool
	killed      bool
	doomed      doom
	m           manager
	// stale is the view of a member that was expelled without knowing it; lie is what
	// it says whatever is true.
	stale  []string
	was    string // the name of that view
	former string // the primary of that view
	lie    *core.GroupView
}

// world is a group in a model Kubernetes.
type world struct {
	now     time.Time
	cluster core.Cluster
	memory  core.Carried
	all     []*instance
	// view are the members of the group, and primary the one that they elected.
	view    []string
	primary string
	changes int
	outlived
	past  bool                   // the status is one of before, and the operator has not looked at it yet
	slow  bool                   // the group does not hand over when it is asked to
	pulls func(name string) bool // whether a Pod that is made does not start, for its image is pulled
	// diligence is how many steps a manager takes at a time, rejoins whether mysqld comes back
	// by itself, recovers whether it takes time for one that joins to receive what it lacks,
	// and made is told when somebody makes the group.
	diligence func() int
	rejoins   func() bool
	recovers  func() bool
	made      func(by *instance, anew bool)
	kills     func(*instance)      // is told when a manager kills mysqld
	revives   func(primary string) // is told when a human has the group go on that others had gone on without
	mut       mutation
	mysql     string // version of Pods that are made
	coverage  *coverage
}

func newWorld(instances int) *world {
	return &world{diligence: func() int { return 20 }, rejoins: func() bool { return false }, recovers: func() bool {
		return false
	}, pulls: func(string) bool { return false }, made: func(*instance, bool) {}, kills: func(*instance) {},
		revives: func(string) {},
		now:     time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC),
		cluster: core.Cluster{Name: "c", Wanted: instances,
			SwitchoverLimit: time.Minute, SwitchoverPause: 5 * time.Second,
			Topology: core.TopologyGroup, Group: &core.Group{WishedName: "g-1"}},
		mysql: "9.7.4"}
}

func (w *world) get(name string) *instance {
	for _, in := range w.all {
		if in.name == name {
			return in
		}
	}
	return nil
}

func (w *world) isMember(name string) bool { return slices.Contains(w.view, name) }

// reaches: two instances can speak with each other.
func (w *world) reaches(a, b string) bool {
	x, y := w.get(a), w.get(b)
	return x != nil && y != nil && x.joined && y.joined && x.part == y.part
}

// settle is what the group does by itself: those who are a majority of the view go on
// without the others, and elect a primary if theirs is gone.
func (w *world) settle() {
	w.revive()
	for _, lead := range w.view {
		var side []string
		for _, other := range w.view {
			if w.reaches(lead, other) {
				side = append(side, other)
			}
		}
		if 2*len(side) <= len(w.view) || len(side) == len(w.view) && slices.Contains(side, w.primary) {
			continue
		}
		w.recall(side)
		w.learn(side)
		w.become(side)
		return
	}
}

// revive: when the group has no quorum, those who went on in an older view are the group, if a
// human had the operator take them for it.
func (w *world) revive() {
	s := w.cluster.Status
	if s.Group == nil || !s.Group.HasQuorum || w.past || w.hasQuorum() {
		return
	}
	for _, in := range w.all {
		if in.stale == nil || !in.joined || !w.says(in).HasQuorum() || s.CurrentPrimary != w.primaryOf(in) {
			continue
		}
		view, primary := in.stale, w.primaryOf(in)
		for _, other := range w.all {
			switch {
			case slices.Equal(other.stale, view):
				other.stale = nil
			case other.joined && slices.Contains(w.view, other.name):
				other.joined, other.state = false, core.MemberError
			}
		}
		w.view, w.primary, w.remembered = view, primary, nil
		w.revives(primary)
		return
	}
}

// learn: what any member of the view has received, a majority has accepted; so another
// majority finds it again.
func (w *world) learn(side []string) {
	for _, name := range side {
		to := w.get(name)
		for _, name := range w.view {
			// One that was removed is in the view until the group has expelled it.
			if from := w.get(name); from != nil && to.state != core.MemberRecovering {
				to.take(from)
			}
		}
	}
}

// take receives what another holds and this one has nothing for.
func (in *instance) take(from *instance) {
	for _, number := range slices.Sorted(maps.Keys(from.content)) {
		if _, has := in.content[number]; !has {
			in.hold(number, from.content[number])
		}
	}
	in.adopt(from.executed.Without(groupUUID))
}

// adopt: what was written beside the group is its own by now.
func (in *instance) adopt(set gtid.Set) {
	if set = set.Subtract(in.executed); !set.IsEmpty() {
		in.executed, in.log = in.executed.Union(set), append(in.log, logged{id: set})
	}
}

// groupUUID is the source of the transactions of the group.
const groupUUID = "11111111-1111-1111-1111-111111111111"

func (in *instance) hold(number, what int) {
	if in.content == nil {
		in.content = map[int]int{}
	}
	in.content[number] = what
	id := numbered(number)
	in.executed, in.log = in.executed.Union(id), append(in.log, logged{id: id, number: number})
}

// ids are the first transactions of a group, which takes long to read again each time.
var ids = func() (all []gtid.Set) {
	for number := range 100 {
		all = append(all, gtid.MustParse(fmt.Sprintf("%s:%d", groupUUID, number+1)))
	}
	return all
}()

// numbered is a transaction of the group.
func numbered(number int) gtid.Set { return ids[number-1] }

// become gives the group another view. Of those who were in it before, whoever has ended or was killed meanwhile is
// listed and reaches nobody.
func (w *world) become(view []string) {
	for _, name := range w.view {
		if in := w.get(name); in != nil && in.joined && !slices.Contains(view, name) {
			in.stale, in.former, in.was = w.view, w.primary, fmt.Sprintf("v:%d", w.changes)
		}
	}
	w.view = view
	for _, name := range view {
		w.get(name).stale = nil
	}
	w.changes++
	if !slices.Contains(view, w.primary) {
		w.primary = ""
		for _, name := range slices.Sorted(slices.Values(view)) {
			if w.primary == "" && w.get(name).state == "" && w.isOldest(name) {
				w.primary = name
			}
		}
	}
}

// leave takes a member out of the group, by its own word.
func (w *world) leave(name string) {
	agrees := w.hasQuorum()
	if agrees { // what it has received comes before its leaving
		w.learn(w.view)
	}
	if in := w.get(name); in != nil {
		in.stale, in.joined = nil, false
	}
	if !w.isMember(name) || !agrees {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(w.view), func(n string) bool { return n == name })
	w.become(rest)
	if in := w.get(name); in != nil {
		in.stale = nil
	}
}

// hasQuorum: as many members of the view as it takes reach each other.
func (w *world) hasQuorum() bool {
	for _, lead := range w.view {
		n := 0
		for _, other := range w.view {
			if w.reaches(lead, other) {
				n++
			}
		}
		if 2*n > len(w.view) {
			return true
		}
	}
	return false
}

// run decides, carries out, and lets the managers act until all is quiet; the effects
// and events are told in their order.
func (w *world) run() string {
	var b strings.Builder
	for range 60 {
		before := w.image()
		text, soon := w.pass()
		b.WriteString(text)
		if w.image() == before && !soon {
			break
		}
		w.now = w.now.Add(400 * time.Millisecond)
	}
	b.WriteString(w.tell())
	return b.String()
}

// pass lets the managers act, decides once, and carries that out; soon: it wants to look
// again in a moment.
func (w *world) pass() (text string, soon bool) {
	soon = w.manage()
	w.settle()
	plan, text := w.plan()
	for _, e := range plan.Effects {
		w.carryOut(e)
	}
	return text, soon || plan.Recheck > 0 && plan.Recheck <= 3*time.Second
}

// plan decides once, and tells what is to be done.
func (w *world) plan() (core.Plan, string) {
	o := w.observe()
	d := decide(&o)
	plan := d.Plan
	if w.coverage != nil {
		w.coverage.look(d)
	}
	w.cluster.Status, w.memory = plan.Status, plan.Carried
	var b strings.Builder
	for _, e := range plan.Events {
		fmt.Fprintf(&b, "  %s: %s\n", e.Reason, e.Message)
	}
	for _, e := range plan.Effects {
		fmt.Fprintf(&b, "- %s\n", e)
	}
	return plan, b.String()
}

func (w *world) tell() string {
	s := w.cluster.Status
	routed, _ := w.cluster.Routed.Get()
	return fmt.Sprintf("= %s, %s (%s): %s\nprimary %q routed %q epoch %d quorum %t of %d\n", s.Diagnosis,
		s.Phase, s.State, s.Reason,
		s.CurrentPrimary, routed, s.Epoch, s.Group.HasQuorum, s.Group.ViewMax)
}

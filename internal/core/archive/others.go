package archive

import (
	"slices"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// Others is what a server knows of the other instances, which may need its binary logs.
type Others struct {
	// Attached: none is away. Each reads the logs or, in a group, is online.
	Attached bool
	// Held is what each of them has executed, at least.
	Held gtid.Set
	// Grouped: they are members of a group, which read no logs while they are online.
	Grouped bool
	// Copied: one that lacks what no log has any more is given a copy by mysqld itself, as in a group, and most of the
	// instances have the data meanwhile. Otherwise a human has to order that, and it is out of work until then.
	Copied bool
}

// Replicas are the others where each replica reads the logs of its primary. They have executed what was noted of them.
func Replicas(attached bool, names []string, noted map[string]gtid.Set) Others {
	return Others{Attached: attached, Held: heldByAll(names, noted)}
}

// Members are the others in a group, of which names are the instances, as one of them sees it. Online members read no
// logs: whoever has left needs what comes after its last transaction. committed is what all members of the view have
// executed, by the group's own word. That word is up to a minute old, which is no harm: an online member has executed
// it for good.
func Members(names []string, view *core.GroupView, committed gtid.Set, noted map[string]gtid.Set) Others {
	out, online := Others{Grouped: true}, 0
	for _, name := range names {
		if slices.ContainsFunc(view.Members, func(m core.ViewMember) bool {
			return m.State == core.MemberOnline && core.IsHostOf(m.Host, name)
		}) {
			online++
		}
	}
	out.Copied = 2*online > len(names)
	out.Attached = online > 0 && online == len(names) && !slices.ContainsFunc(view.Members,
		func(m core.ViewMember) bool { return m.State != core.MemberOnline })
	if out.Attached {
		out.Held = committed
	} else {
		out.Held = heldByAll(names, noted)
	}
	return out
}

// heldByAll is what all of them have; nothing as soon as nothing is known of one.
func heldByAll(names []string, noted map[string]gtid.Set) (held gtid.Set) {
	for i, name := range names {
		if i == 0 {
			held = noted[name]
		}
		held = held.Intersect(noted[name])
	}
	return held
}

// hold reports whether each of them is known to have all that the logs from the first one up to next have.
func (o Others) hold(first, next Log) bool {
	before, isKnown := first.Began.Get()
	until, ends := next.Began.Get()
	return isKnown && ends && o.Held.Contains(until.Subtract(before))
}

// mayNeed reports whether one of them may need a log of this age. A replica that reads the logs does not need an old
// one, nor does one that is away, and had it. A fresh one it may need even then: it may be a copy of another.
func (o Others) mayNeed(isHeld bool, age time.Duration) bool {
	if o.Grouped {
		return !isHeld
	}
	return age < fresh || !isHeld && !o.Attached
}

// mayLack reports whether one of them may lack what is archived.
func (o Others) mayLack() bool { return o.Copied || o.Attached && !o.Grouped }

// mayMissForGood reports whether one of them may lack what is not archived, either.
func (o Others) mayMissForGood(isHeld bool) bool { return o.Attached && (isHeld || !o.Grouped) }

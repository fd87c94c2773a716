package sim

import (
	"math/rand/v2"
	"time"
)

// scene is one step of a drama: a fault, most often of the primary, a while after
// the one before.
type scene struct {
	within time.Duration
	kind   string
	// primary: it happens to the primary; otherwise to anybody.
	primary bool
	// after is how much later it happens at least; same: to whom the one before did.
	after time.Duration
	same  bool
}

// dramas are sequences that chance alone would rarely put together: each is the
// way to a mistake that somebody made.
var dramas = [][]scene{
	// Commits wait for acknowledgements that do not come, and then the primary has to go.
	{{kind: "replicas cannot reach the primary", primary: true},
		{within: 8 * time.Second, kind: "a Pod is deleted", primary: true}},
	{{kind: "replicas cannot reach the primary", primary: true},
		{within: 8 * time.Second, kind: "mysqld crashes", primary: true}},
	{{kind: "replicas cannot reach the primary", primary: true},
		{within: 8 * time.Second, kind: "a switchover is asked for"}},
	{{kind: "acknowledgements are late", primary: true},
		{within: 4 * time.Second, kind: "mysqld crashes", primary: true},
		{within: 20 * time.Second, kind: "a switchover is asked for"}},
	{{kind: "acknowledgements are late", primary: true},
		{within: 4 * time.Second, kind: "a Pod is deleted by force", primary: true}},
	// What is received and what is applied differ, and so do the replicas.
	{{kind: "one replica receives late"},
		{within: time.Second, kind: "an applier is slow"},
		{within: 6 * time.Second, kind: "mysqld crashes", primary: true}},
	{{kind: "an applier is slow"},
		{within: 2 * time.Second, kind: "an applier is slow"},
		{within: 8 * time.Second, kind: "node loses power", primary: true}},
	{{kind: "one replica receives late"},
		{within: 5 * time.Second, kind: "spec.instances is changed"},
		{within: 5 * time.Second, kind: "a Pod and its volume are deleted", primary: true}},
	{{kind: "replicas lag, each in its own way"}, {within: 3 * time.Second, kind: "mysqld crashes", primary: true}},
	{{kind: "replicas lag, each in its own way"}, {within: 3 * time.Second, kind: "node loses power", primary: true}},
	// Peers stand behind a primary that nobody else reaches.
	{{kind: "node cannot reach the control plane", primary: true},
		{within: 30 * time.Second, kind: "a Pod is deleted by force", primary: true}},
	{{kind: "node cannot reach the control plane", primary: true},
		{within: 20 * time.Second, kind: "replicas cannot reach the primary", primary: true}},
	{{kind: "node cannot reach the API server", primary: true},
		{within: 4 * time.Second, kind: "a switchover is asked for"}},
	{{kind: "node cannot reach the API server", primary: true},
		{within: 4 * time.Second, kind: "mysqld crashes", primary: true}},
	{{kind: "the primary and one replica are cut off together", primary: true},
		{within: 30 * time.Second, kind: "manager crashes"}},
	// Two decide at once, or one decides on what it has not seen.
	{{kind: "two operators are at work"},
		{within: time.Second, kind: "mysqld crashes", primary: true},
		{within: 2 * time.Second, kind: "a switchover is asked for"}},
	{{kind: "two operators are at work"},
		{within: time.Second, kind: "a switchover is asked for"},
		{within: 2 * time.Second, kind: "a Pod is deleted by force", primary: true}},
	{{kind: "a switchover is asked for"},
		{within: 50 * time.Millisecond, kind: "the operator crashes after its next status"},
		{within: 2 * time.Second, kind: "manager crashes", primary: true}},
	// A promise is given, and who gave it is out of sight.
	{{kind: "an applier stops with an error"},
		{within: 2 * time.Second, kind: "mysqld crashes", primary: true},
		{within: 200 * time.Millisecond, kind: "node cannot reach the operator", primary: true},
		{within: 2 * time.Second, kind: "manager crashes", primary: true}},
	{{kind: "a switchover is asked for"},
		{within: 30 * time.Millisecond, kind: "node cannot reach the operator", primary: true},
		{within: 3 * time.Second, kind: "manager crashes", primary: true}},
	{{kind: "mysqld crashes", primary: true},
		{within: 100 * time.Millisecond, kind: "node is cut off"},
		{within: 3 * time.Second, kind: "manager crashes", primary: true}},
	{{kind: "all appliers stop with an error"},
		{within: time.Second, kind: "mysqld crashes", primary: true},
		{within: 300 * time.Millisecond, kind: "node cannot reach the operator", primary: true},
		{within: time.Second, kind: "manager crashes", primary: true}},
	{{kind: "node is cut off", primary: true},
		{within: 7 * time.Second, kind: "manager crashes"},
		{within: 7 * time.Second, kind: "manager crashes"}},
	// The Pod's object is gone, and its mysqld is not.
	{{kind: "node cannot reach the operator", primary: true},
		{within: 4 * time.Second, kind: "a Pod is deleted by force", primary: true}},
	{{kind: "node is cut off", primary: true},
		{within: 4 * time.Second, kind: "a Pod is deleted by force", primary: true}},
	{{kind: "node cannot reach the operator", primary: true},
		{within: 5 * time.Second, kind: "a Pod is deleted", primary: true},
		{within: 20 * time.Second, kind: "a Pod is deleted by force", primary: true}},
	// The same again before everything is in order.
	{{kind: "mysqld crashes", primary: true},
		{within: 3 * time.Second, kind: "mysqld crashes", primary: true},
		{within: 3 * time.Second, kind: "mysqld crashes", primary: true}},
	{{kind: "node loses power"},
		{within: 2 * time.Second, kind: "acknowledgements are late", primary: true},
		{within: 3 * time.Second, kind: "mysqld crashes", primary: true},
		{within: 8 * time.Second, kind: "a switchover is asked for"}},
	{{kind: "node is cut off", primary: true},
		{within: 30 * time.Second, kind: "a switchover is asked for"},
		{within: 5 * time.Second, kind: "mysqld crashes", primary: true}},
	{{kind: "mysqld hangs", primary: true},
		{within: 3 * time.Second, kind: "a switchover is asked for"},
		{within: 3 * time.Second, kind: "node is cut off", primary: true}},
	{{kind: "spec.instances is changed"},
		{within: 15 * time.Second, kind: "mysqld crashes", primary: true},
		{within: 3 * time.Second, kind: "a Pod and its volume are deleted", primary: true}},
	// The operator goes by what it has seen of a lease that is renewed all the same.
	{{kind: "node reaches only the API server", primary: true},
		{after: 3 * time.Second, within: 3 * time.Second, kind: "the operators cannot reach the API server"}},
	// Who has promised to vouch for nobody is out of sight, and starts again.
	{{kind: "node cannot reach the control plane", primary: true},
		{within: time.Second, kind: "a Pod is deleted by force", primary: true},
		{after: 9 * time.Second, within: 4 * time.Second, kind: "node cannot reach the operator"},
		{within: 300 * time.Millisecond, kind: "manager crashes", same: true}},
	{{kind: "node cannot reach the control plane", primary: true},
		{within: 500 * time.Millisecond, kind: "a Pod is deleted by force", primary: true},
		{after: 9 * time.Second, within: 2 * time.Second, kind: "node cannot reach the operator"},
		{within: 100 * time.Millisecond, kind: "manager crashes", same: true}},
	// A primary comes back without what it once sent.
	{{kind: "all appliers stop with an error"},
		{after: 20 * time.Millisecond, within: time.Second, kind: "a server has lost its last writes", primary: true}},
	// The primary lives on its side of a partition, with clients and without its Pod's object.
	{{kind: "node reaches only the API server", primary: true},
		{within: 8 * time.Second, kind: "a Pod is deleted by force", primary: true}},
}

// losses are the dramas in which a member has lost its data when the primary fails.
var losses = [][]scene{
	{{kind: "one replica receives late"},
		{within: 2 * time.Second, kind: "a Pod and its volume are deleted"},
		{within: 3 * time.Second, kind: "node is cut off", primary: true}},
	{{kind: "a Pod and its volume are deleted"},
		{within: 5 * time.Second, kind: "node cannot reach the control plane", primary: true}},
}

func drama(r *rand.Rand, at *time.Duration) []Fault {
	return act(r, dramas[r.IntN(len(dramas))], at)
}

func act(r *rand.Rand, scenes []scene, at *time.Duration) []Fault {
	var out []Fault
	for _, s := range scenes {
		*at += s.after
		if s.within > 0 {
			*at += time.Duration(r.Int64N(int64(s.within)))
		}
		f := Fault{At: *at, Kind: s.kind, Dice: roll(r)}
		switch {
		case s.same:
			f.Dice = out[len(out)-1].Dice
		case s.primary:
			f.Dice[0] = 0
		}
		out = append(out, f)
	}
	return out
}

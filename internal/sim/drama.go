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
}

// dramas are sequences that chance alone would rarely put together: each is the
// way to a mistake that somebody made.
var dramas = [][]scene{
	// Commits wait for acknowledgements that do not come, and then the primary has to go.
	{{0, "replicas cannot reach the primary", true}, {8 * time.Second, "a Pod is deleted", true}},
	{{0, "replicas cannot reach the primary", true}, {8 * time.Second, "mysqld crashes", true}},
	{{0, "replicas cannot reach the primary", true}, {8 * time.Second, "a switchover is asked for", false}},
	{{0, "acknowledgements are late", true}, {4 * time.Second, "mysqld crashes", true}, {20 * time.Second, "a switchover is asked for", false}},
	{{0, "acknowledgements are late", true}, {4 * time.Second, "a Pod is deleted by force", true}},
	// What is received and what is applied differ, and so do the replicas.
	{{0, "one replica receives late", false}, {time.Second, "an applier is slow", false}, {6 * time.Second, "mysqld crashes", true}},
	{{0, "an applier is slow", false}, {2 * time.Second, "an applier is slow", false}, {8 * time.Second, "node loses power", true}},
	{{0, "one replica receives late", false}, {5 * time.Second, "spec.instances is changed", false}, {5 * time.Second, "a Pod and its volume are deleted", true}},
	{{0, "replicas lag, each in its own way", false}, {3 * time.Second, "mysqld crashes", true}},
	{{0, "replicas lag, each in its own way", false}, {3 * time.Second, "node loses power", true}},
	// Peers stand behind a primary that nobody else reaches.
	{{0, "node cannot reach the control plane", true}, {30 * time.Second, "a Pod is deleted by force", true}},
	{{0, "node cannot reach the control plane", true}, {20 * time.Second, "replicas cannot reach the primary", true}},
	{{0, "node cannot reach the API server", true}, {4 * time.Second, "a switchover is asked for", false}},
	{{0, "node cannot reach the API server", true}, {4 * time.Second, "mysqld crashes", true}},
	{{0, "the primary and one replica are cut off together", true}, {30 * time.Second, "manager crashes", false}},
	// Two decide at once, or one decides on what it has not seen.
	{{0, "two operators are at work", false}, {time.Second, "mysqld crashes", true}, {2 * time.Second, "a switchover is asked for", false}},
	{{0, "two operators are at work", false}, {time.Second, "a switchover is asked for", false}, {2 * time.Second, "a Pod is deleted by force", true}},
	{{0, "a switchover is asked for", false}, {50 * time.Millisecond, "the operator crashes after its next status", false}, {2 * time.Second, "manager crashes", true}},
	// A promise is given, and who gave it is out of sight.
	{{0, "an applier stops with an error", false}, {2 * time.Second, "mysqld crashes", true}, {200 * time.Millisecond, "node cannot reach the operator", true}, {2 * time.Second, "manager crashes", true}},
	{{0, "a switchover is asked for", false}, {30 * time.Millisecond, "node cannot reach the operator", true}, {3 * time.Second, "manager crashes", true}},
	{{0, "mysqld crashes", true}, {100 * time.Millisecond, "node is cut off", false}, {3 * time.Second, "manager crashes", true}},
	{{0, "all appliers stop with an error", false}, {time.Second, "mysqld crashes", true}, {300 * time.Millisecond, "node cannot reach the operator", true}, {time.Second, "manager crashes", true}},
	{{0, "node is cut off", true}, {7 * time.Second, "manager crashes", false}, {7 * time.Second, "manager crashes", false}},
	// The Pod's object is gone, and its mysqld is not.
	{{0, "node cannot reach the operator", true}, {4 * time.Second, "a Pod is deleted by force", true}},
	{{0, "node is cut off", true}, {4 * time.Second, "a Pod is deleted by force", true}},
	{{0, "node cannot reach the operator", true}, {5 * time.Second, "a Pod is deleted", true}, {20 * time.Second, "a Pod is deleted by force", true}},
	// The same again before everything is in order.
	{{0, "mysqld crashes", true}, {3 * time.Second, "mysqld crashes", true}, {3 * time.Second, "mysqld crashes", true}},
	{{0, "node loses power", false}, {2 * time.Second, "acknowledgements are late", true}, {3 * time.Second, "mysqld crashes", true}, {8 * time.Second, "a switchover is asked for", false}},
	{{0, "node is cut off", true}, {30 * time.Second, "a switchover is asked for", false}, {5 * time.Second, "mysqld crashes", true}},
	{{0, "mysqld hangs", true}, {3 * time.Second, "a switchover is asked for", false}, {3 * time.Second, "node is cut off", true}},
	{{0, "spec.instances is changed", false}, {15 * time.Second, "mysqld crashes", true}, {3 * time.Second, "a Pod and its volume are deleted", true}},
}

func drama(r *rand.Rand, at *time.Duration) []Fault {
	var out []Fault
	for _, s := range dramas[r.IntN(len(dramas))] {
		if s.within > 0 {
			*at += time.Duration(r.Int64N(int64(s.within)))
		}
		f := Fault{At: *at, Kind: s.kind, Dice: roll(r)}
		if s.primary {
			f.Dice[0] = 0
		}
		out = append(out, f)
	}
	return out
}

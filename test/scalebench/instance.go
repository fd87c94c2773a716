package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/layout"
)

// instance is a manager and its mysqld, played: it reports and obeys as they do, and there
// is nothing behind it. What is measured is who listens to it.
type instance struct {
	fleet   *fleet
	key     types.NamespacedName
	cluster types.NamespacedName
	address string
	handler http.Handler
	began   time.Time
	// listeners is how many status streams stand.
	listeners atomic.Int64
	// on is the node of its Pod, and open whether its mysqld takes writes.
	on   atomic.Pointer[string]
	open atomic.Bool

	mu      sync.Mutex
	report  core.Report
	changed chan struct{}
	view    *v1alpha1.Cluster
	leaf    *tls.Certificate
	pool    *x509.CertPool
	// opening is the epoch in which it is being made writable, and opened when it was last.
	opening int64
	opened  time.Time
	renewed time.Time
	// withheld is since when it vouches for nobody.
	withheld time.Time
}

func newInstance(f *fleet, key, cluster types.NamespacedName, address string) *instance {
	in := &instance{fleet: f, key: key, cluster: cluster, address: address, began: time.Now(),
		changed: make(chan struct{})}
	in.handler = control.NewHandler(in)
	in.report = core.Report{Instance: key.Name, State: core.Empty, Data: core.DataEmpty, VolumeLocked: true,
		Version: "9.7.4", Boot: key.String()}
	go in.keepLease()
	return in
}

// runsIn has the instance run in a Pod. One that runs already stays.
func (in *instance) runsIn(pod *corev1.Pod) {
	in.on.Store(&pod.Spec.NodeName)
	in.change(func(r *core.Report) {
		r.PodUID, r.Node = string(pod.UID), pod.Spec.NodeName
		r.Boot = r.PodUID
	})
}

// change changes the report, and tells whoever listens.
func (in *instance) change(how func(r *core.Report)) {
	in.mu.Lock()
	defer in.mu.Unlock()
	how(&in.report)
	in.open.Store(in.report.WritableEpoch != 0)
	close(in.changed)
	in.changed = make(chan struct{})
}

// uuid of its server.
func (in *instance) uuid() string {
	var a, b, c, d int
	_, _ = fmt.Sscanf(in.address, "%d.%d.%d.%d", &a, &b, &c, &d)
	return fmt.Sprintf("00000000-0000-4000-8000-0000%02x%02x%02x%02x", a, b, c, d)
}

// snapshot is what it says now, and a channel that is closed when it says something else.
func (in *instance) snapshot(asked time.Time) (control.Snapshot, <-chan struct{}) {
	in.mu.Lock()
	defer in.mu.Unlock()
	r := in.report
	if r.Server != nil {
		s := *r.Server
		r.Server = &s
	}
	if r.Withheld != nil {
		r.Withheld = &core.Withheld{Below: r.Withheld.Below, Seconds: int(time.Since(in.withheld).Seconds())}
	}
	now := time.Since(in.began).Nanoseconds()
	return control.Snapshot{Taken: now, Made: now, Asked: asked.Sub(in.began).Nanoseconds(), Report: r}, in.changed
}

// Snapshot is a report of now.
func (in *instance) Snapshot(context.Context) control.Snapshot {
	s, _ := in.snapshot(time.Now())
	return s
}

// Watch sends one at once, at every change, and each second.
func (in *instance) Watch(ctx context.Context, send func(control.Snapshot) error) error {
	in.listeners.Add(1)
	defer in.listeners.Add(-1)
	asked, tick := time.Now(), time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		s, changed := in.snapshot(asked)
		if err := send(s); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-tick.C:
		}
	}
}

func (in *instance) node() string {
	if node := in.on.Load(); node != nil {
		return *node
	}
	return ""
}

// sends reports whether replicas receive from the instance.
func (in *instance) sends() bool { return in.open.Load() && !in.fleet.isSilent(in.node()) }

// Vouch is not asked for: the primaries that are played do not fence themselves.
func (in *instance) Vouch(context.Context, string, int64) error { return notPlayed("a vouch") }

// ReplaceManager is not played.
func (in *instance) ReplaceManager(context.Context, string, io.Reader) error {
	return notPlayed("another binary")
}

// StartCheck is not played.
func (in *instance) StartCheck(control.CheckOrder) error { return notPlayed("a check") }

// CheckReport is not played.
func (in *instance) CheckReport() control.CheckReport { return control.CheckReport{} }

func notPlayed(what string) error {
	return &control.Refusal{Reason: core.ControlFailed, Message: what + " is not played"}
}

// Order does at once what a manager does in a while.
func (in *instance) Order(_ context.Context, o control.Order) error {
	in.mu.Lock()
	standing := agent.Standing{Seen: in.report.SeenEpoch, Locked: true, Adopted: true, Data: in.report.Data}
	in.mu.Unlock()
	if no := standing.Refuses(o.OfEpoch()); no != nil {
		return &control.Refusal{Reason: no.Reason, Message: no.Message}
	}
	switch o := o.(type) {
	case control.Demote:
		in.change(func(r *core.Report) {
			r.NoWritesBelow, r.WritableEpoch = max(r.NoWritesBelow, o.Epoch), 0
			if r.Server != nil {
				r.Server.SuperReadOnly = true
			}
		})
	case control.ReceivePromise:
		in.freeze(o.Epoch)
	case control.CloneFrom:
		in.change(func(r *core.Report) { in.populate(r, in.sourceIn(in.view)) })
	case control.SetAcks:
		in.change(func(r *core.Report) {
			if r.Server != nil {
				semi := &r.Server.SemiSync
				semi.Acks, semi.Order, semi.OrderEpoch = o.Acks, o.Number, o.Epoch
			}
		})
	case control.RestartInPlace:
		in.change(func(r *core.Report) { r.State, r.Reason, r.Server = core.Running, "", in.server() })
	default:
		return notPlayed(string(o.Verb()))
	}
	return nil
}

func (in *instance) freeze(below int64) {
	in.change(func(r *core.Report) {
		r.NoReceivingBelow, r.Withheld = max(r.NoReceivingBelow, below), &core.Withheld{Below: below}
		in.withheld = time.Now()
		if r.Server != nil && r.Server.Replication != nil {
			c := *r.Server.Replication
			c.IORunning, c.IOConnecting = false, false
			r.Server.Replication = &c
		}
	})
}

// history is all that anybody of a cluster has executed: nobody writes to it.
var history = gtid.MustParse("11111111-1111-4111-8111-111111111111:1-1000")

func (in *instance) server() *core.Server {
	return &core.Server{UUID: in.uuid(), SuperReadOnly: true, Executed: history,
		SemiSync: core.SemiSync{ReplicaEnabled: true}}
}

// populate gives it data, as a replica of source.
func (in *instance) populate(r *core.Report, source *instance) {
	r.State, r.Reason, r.Message, r.Data, r.Server = core.Running, "", "", core.DataPopulated, in.server()
	if source != nil && source != in {
		r.Server.Replication = &core.Replication{SourceHost: layout.InstanceHost(source.key.Name, source.key.Namespace),
			SourceUUID: source.uuid(), IORunning: true, SQLRunning: true}
	}
}

// sourceIn is the primary by a Cluster.
func (in *instance) sourceIn(c *v1alpha1.Cluster) *instance {
	if c == nil || c.Status.Promotion == nil {
		return nil
	}
	return in.fleet.find(types.NamespacedName{Namespace: in.key.Namespace, Name: c.Status.Promotion.Instance})
}

// crash ends its mysqld. It comes back as a replica, once another was promoted.
func (in *instance) crash() {
	in.change(func(r *core.Report) {
		r.State, r.Reason, r.Server, r.WritableEpoch = core.Stopped, core.InstanceMysqldCrashed, nil, 0
	})
	in.abandon()
}

// lose breaks the connection to a source.
func (in *instance) lose(source string) {
	in.change(func(r *core.Report) {
		if r.Server == nil || r.Server.Replication == nil || r.Server.Replication.SourceUUID != source {
			return
		}
		c := *r.Server.Replication
		c.IORunning, c.IOConnecting = false, r.Withheld == nil
		r.Server.Replication = &c
	})
}

// abandon has the others notice that the instance does not send anything any more.
func (in *instance) abandon() {
	for _, other := range in.fleet.members(in.cluster) {
		if other != in {
			other.lose(in.uuid())
		}
	}
}

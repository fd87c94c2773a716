package operator

import (
	"context"
	"crypto/tls"
	"net"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/layout"
)

// endpoint is where and as whom an instance's manager is spoken to.
type endpoint struct {
	podUID  string
	address string
	tls     *tls.Config
}

// words is what was heard of one instance.
type words struct {
	core.Heard
	// unheard is why the manager cannot be reached; "" while it is heard, or when nobody has tried.
	unheard string
	// successor is what came of sending its manager another binary.
	successor core.Successor
}

// Streams holds one status stream per instance, and calls wake when what was
// heard may change a decision.
type Streams struct {
	ctx  context.Context
	log  logr.Logger
	wake func(cluster types.NamespacedName)

	mu      sync.Mutex
	streams map[types.NamespacedName]*stream
	// of are those of each cluster, by instance: a look at one cluster must not cost more
	// because there are others.
	of map[types.NamespacedName]map[string]*stream
	// met are the clusters that enough was heard of to decide.
	met map[types.NamespacedName]bool
}

// NewStreams makes an empty set; streams end with ctx.
func NewStreams(ctx context.Context, log logr.Logger, wake func(types.NamespacedName)) *Streams {
	return &Streams{ctx: ctx, log: log, wake: wake, streams: map[types.NamespacedName]*stream{},
		of: map[types.NamespacedName]map[string]*stream{}, met: map[types.NamespacedName]bool{}}
}

// stream is the standing connection to one instance's manager.
type stream struct {
	cluster  types.NamespacedName
	instance string
	to       endpoint
	client   *control.Client
	cancel   context.CancelFunc
	since    time.Time
	limits   streamLimits
	// asked is when a report was asked for last, to measure; asking: one is.
	asked  time.Time
	asking atomic.Bool
	// successor is the sending of another binary to the manager; nil when none was sent.
	successor *succession

	mu    sync.Mutex
	words words
	// hearing tells when what the manager says was read.
	hearing core.Hearing
	// streamed: what was kept last came by the stream, and was no answer.
	streamed bool
	// failed is why it could not be reached the last time.
	failed string
	// looked is when somebody asked what was heard.
	looked time.Time
	// over: nobody is asked or listened to any more.
	over bool
}

// Keep makes sure that a stream to the instance's manager stands, and makes another when the
// instance has a new Pod, or certificates are renewed. What was heard before stays.
func (s *Streams) Keep(cluster types.NamespacedName, instance string, to endpoint) {
	key := types.NamespacedName{Namespace: cluster.Namespace, Name: instance}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.streams[key]
	if old != nil && old.to == to && !old.isOver() {
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	fresh := &stream{cluster: cluster, instance: instance, to: to, cancel: cancel, since: time.Now(),
		limits: newStreamLimits(),
		client: control.NewClient(net.JoinHostPort(to.address, strconv.Itoa(layout.ControlPort)),
			serverName(to.tls, layout.InstanceHost(instance, cluster.Namespace)))}
	if old != nil {
		old.stop()
		fresh.follow(old)
	}
	s.put(key, fresh)
	go fresh.run(ctx, s)
}

// follow takes over what an earlier stream to the instance has heard. If the same Pod is spoken
// to, by another certificate, its last report stands until the new stream brings one, or
// cannot be set up. What the manager of another Pod said is no report of this one's.
func (st *stream) follow(old *stream) {
	old.mu.Lock()
	defer old.mu.Unlock()
	st.words = old.words
	if st.to.podUID != old.to.podUID || st.to.address != old.to.address {
		st.words.Lose()
		return
	}
	st.successor = old.successor
	st.hearing, st.looked = old.hearing, old.looked
}

// Tidy ends the streams of a cluster that nobody answers and nobody will: all but
// those to be kept. What members said last is kept; it may be a proof.
func (s *Streams) Tidy(cluster types.NamespacedName, keep, members []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for instance, st := range s.of[cluster] {
		if slices.Contains(keep, instance) || !st.endSilent() {
			continue
		}
		if !slices.Contains(members, instance) {
			s.drop(cluster, instance)
		}
	}
}

// ForgetCluster ends all streams of a cluster.
func (s *Streams) ForgetCluster(cluster types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for instance, st := range s.of[cluster] {
		st.stop()
		s.drop(cluster, instance)
	}
	delete(s.met, cluster)
}

// put and drop keep both maps alike; the lock is held.
func (s *Streams) put(key types.NamespacedName, st *stream) {
	s.streams[key] = st
	if s.of[st.cluster] == nil {
		s.of[st.cluster] = map[string]*stream{}
	}
	s.of[st.cluster][key.Name] = st
}

func (s *Streams) drop(cluster types.NamespacedName, instance string) {
	delete(s.streams, types.NamespacedName{Namespace: cluster.Namespace, Name: instance})
	if delete(s.of[cluster], instance); len(s.of[cluster]) == 0 {
		delete(s.of, cluster)
	}
}

// HasMet reports whether enough was heard of a cluster, by this operator, to decide about it.
func (s *Streams) HasMet(cluster types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.met[cluster]
}

// FirstContact reports whether too little was heard yet of a cluster, by this operator, to decide
// about it. Once enough was, it is enough for good. A cluster without streams has nobody who could
// be heard.
func (s *Streams) FirstContact(cluster types.NamespacedName, status *core.Status) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.met[cluster] || len(s.of[cluster]) == 0 {
		return false
	}
	var all []core.Contact
	for instance, st := range s.of[cluster] {
		w := st.heard()
		all = append(all, core.Contact{Instance: instance, Begun: st.since, Report: w.Report,
			Answered: w.Latest.Known() || w.unheard != ""})
	}
	s.met[cluster] = !core.IsFirstContact(status, all, time.Now())
	return !s.met[cluster]
}

// Heard returns what is known of an instance, for whoever decides about its cluster. Of an
// instance without a stream nothing is known.
func (s *Streams) Heard(namespace, instance string) words {
	if st := s.stream(namespace, instance); st != nil {
		return st.look()
	}
	return words{}
}

// isPrimary reports whether an instance is heard and says that it is the primary.
func (s *Streams) isPrimary(namespace, instance string) bool {
	st := s.stream(namespace, instance)
	if st == nil {
		return false
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	report, known := st.words.Report.Get()
	return known && report.IsPrimary()
}

// Lag returns how far an instance is behind its primary, while it is heard, and receives and
// applies. Otherwise that is unknown.
func (s *Streams) Lag(namespace, instance string) core.Fact[time.Duration] {
	st := s.stream(namespace, instance)
	if st == nil {
		return core.Fact[time.Duration]{}
	}
	heard := st.heard().Report
	r, known := heard.Get()
	if !known || r.Server == nil {
		return core.Fact[time.Duration]{}
	}
	seconds, follows := r.Server.Lag()
	if c := r.Server.Replication; !follows || c != nil && (!c.IORunning || !c.SQLRunning) {
		return core.Fact[time.Duration]{}
	}
	return core.Known(time.Duration(seconds*float64(time.Second)), heard.NotBefore(), heard.Received())
}

// Refresh asks an instance for a report now, within core.ReportLimit. When it returns nil, the
// report is heard. errNoStream when nobody listens to the instance.
func (s *Streams) Refresh(ctx context.Context, namespace, instance string) error {
	st := s.stream(namespace, instance)
	if st == nil {
		return errNoStream
	}
	ctx, cancel := context.WithTimeout(ctx, core.ReportLimit)
	defer cancel()
	begun := time.Now()
	snap, err := st.client.Status(ctx)
	if err == nil {
		st.hear(snap, begun)
	}
	return err
}

// Order sends an order to an instance, within core.OrderLimit. When it returns nil, the report
// after it is heard. errNoStream means that it was not sent. Any other error that is no
// *control.Refusal leaves open whether it came.
func (s *Streams) Order(ctx context.Context, namespace, instance string, o control.Order) error {
	st := s.stream(namespace, instance)
	if st == nil {
		return errNoStream
	}
	ctx, cancel := context.WithTimeout(ctx, core.OrderLimit)
	defer cancel()
	begun := time.Now()
	snap, err := st.client.Order(ctx, o)
	if err == nil {
		st.hear(snap, begun)
	}
	return err
}

func (s *Streams) stream(namespace, instance string) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams[types.NamespacedName{Namespace: namespace, Name: instance}]
}

func (st *stream) stop() {
	st.cancel()
	st.client.Close()
}

// endSilent ends a stream for good, unless the manager can be heard.
func (st *stream) endSilent() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.words.Report.Known() {
		return false
	}
	if !st.over {
		st.over = true
		st.stop()
	}
	return true
}

func (st *stream) isOver() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.over
}

// look is what was heard, for whoever decides.
func (st *stream) look() words {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.looked = time.Now()
	return st.said()
}

// said is what was heard; the lock is held.
func (st *stream) said() words {
	w := st.words
	if st.successor != nil {
		w.successor = st.successor.came()
	}
	return w
}

func (st *stream) heard() words {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.said()
}

// run holds the stream until ctx ends; it is set up again whenever it breaks.
func (st *stream) run(ctx context.Context, s *Streams) {
	st.asked = time.Now()
	pause := core.ReconnectFirst
	for ctx.Err() == nil {
		begun := time.Now()
		err := st.client.Watch(ctx, func(snap control.Snapshot) {
			pause = core.ReconnectFirst
			if st.hearStream(snap, begun) {
				st.limits.wake(ctx, func() { s.wake(st.cluster) })
			}
			st.measure(ctx)
			st.limits.read(ctx)
		})
		if ctx.Err() != nil {
			return
		}
		if st.lose(err) {
			s.log.Info("the manager cannot be reached", "instance", st.cluster.Namespace+"/"+st.instance,
				"podUID", st.to.podUID, "error", err.Error())
			s.wake(st.cluster)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
			pause = min(2*pause, core.ReconnectMost)
		}
	}
}

// hear keeps an answer, and hearStream what the stream brings; each tells whether it may
// change a decision.
func (st *stream) hear(snap control.Snapshot, begun time.Time) bool {
	return st.keep(snap, begun, false)
}

func (st *stream) hearStream(snap control.Snapshot, begun time.Time) bool {
	return st.keep(snap, begun, true)
}

// keep keeps the report of a snapshot that was asked for at begun, and tells
// whether it may change a decision. One that was made earlier than the last is dropped.
func (st *stream) keep(snap control.Snapshot, begun time.Time, isStreamed bool) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.over {
		return false
	}
	w, r, now := &st.words, snap.Report, time.Now()
	readAt, isNew := st.hearing.Hear(r.Boot, snap.Moments(), begun, now)
	if !isNew {
		return false
	}
	if last, known := w.Latest.Get(); !known || r.IsOfAnotherManager(last) {
		st.successor = nil // that the former one took none, or did, says nothing of this one
	}
	repeats := isStreamed && snap.Repeats && st.streamed
	st.streamed = isStreamed
	before, known := w.Report.Get()
	w.Take(r, readAt, now)
	w.unheard = ""
	return !known || !repeats && (matters(before, r) || time.Since(st.looked) >= core.LookAgain && before.HasMoved(r))
}

// lose records that the manager cannot be heard any more, and why. It tells whether that is news: it
// could until now, or nothing was known before, or there is another reason. That has to come twice:
// where two alternate, as of packets that get lost, one stays.
func (st *stream) lose(err error) (isNews bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	w, why := &st.words, whyUnheard(err)
	isNews = w.Report.Known() || w.unheard == "" || why != w.unheard && why == st.failed
	if st.failed = why; isNews {
		w.unheard = why
	}
	w.Lose()
	return isNews
}

// matters reports whether two reports differ in more than positions and lag.
func matters(a, b core.Report) bool {
	return !reflect.DeepEqual(a.WithoutPositions(), b.WithoutPositions())
}

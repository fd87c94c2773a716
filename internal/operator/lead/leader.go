package lead

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Options of an operator that may lead.
type Options struct {
	// Namespace in which the lease is kept.
	Namespace string
	// Address at which other operators reach this one's probes, and what they listen on; "" when the
	// address is not known.
	Address, ProbeAddress string
}

// Times of the lead. A standby takes it when the lease has run out, or earlier, when the
// leader's process was reached before and is not reached any more, while others are: its node
// is lost, and mostly a primary with it. Two that work at once do no harm, for every decision is a
// conditional write.
const (
	leaseDuration = 10 * time.Second
	renewDeadline = 6 * time.Second
	// leaseRenewal is how often the leader writes, leaseLook how often a standby looks.
	leaseRenewal = time.Second
	leaseLook    = 500 * time.Millisecond
	// leaderSilence is how long the leader is not reached before its lease is taken, and
	// leaderMisses how often it was tried meanwhile.
	leaderSilence = 2 * time.Second
	leaderMisses  = 2
	dialLimit     = time.Second
)

const leaseName = "cnmsql-operator"

// leaderLock is the lease of the leader, which a standby may take before it has run out.
type leaderLock struct {
	resourcelock.Interface
	watch *leaderWatch
	log   logr.Logger
	// renewed is when this process wrote the lease last; zero while it does not have it.
	renewed time.Time
	// holder is who had the lease when it was read last.
	holder string
}

// newLeaderLock makes a lock whose identity tells at which address this process listens, and
// watches over the leader until ctx ends. Without an address of its own this process keeps
// its lease as long as it lasts.
func newLeaderLock(ctx context.Context, conf *rest.Config, o Options, log logr.Logger) (*leaderLock, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	conf = rest.AddUserAgent(rest.CopyConfig(conf), "leader-election")
	conf.Timeout = renewDeadline / 2 // a request that hangs must not lose the lead alone
	clients, err := kubernetes.NewForConfig(conf)
	if err != nil {
		return nil, err
	}
	identity := leaderIdentity(host, uuid.NewString(), o.Address, o.ProbeAddress)
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, o.Namespace, leaseName,
		clients.CoreV1(), clients.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: identity})
	if err != nil {
		return nil, fmt.Errorf("making the lease of the leading operator: %w", err)
	}
	others := &bystanders{pods: clients.CoreV1().Pods, namespace: o.Namespace, me: host, dial: dial, log: log}
	watch := &leaderWatch{dial: dial, reachesOthers: others.reached}
	go watch.run(ctx)
	return &leaderLock{Interface: lock, watch: watch, log: log}, nil
}

// Elect has one of several operators work at a time: the manager that is made with these options works once it
// leads. The watch over the leader ends with ctx.
func Elect(ctx context.Context, conf *rest.Config, o Options, to *ctrl.Options) error {
	lock, err := newLeaderLock(ctx, conf, o, ctrl.Log.WithName("leader"))
	if err != nil {
		return err
	}
	to.LeaderElection, to.LeaderElectionResourceLockInterface, to.LeaderElectionReleaseOnCancel = true, lock, true
	to.LeaseDuration, to.RenewDeadline, to.RetryPeriod = new(leaseDuration), new(renewDeadline), new(leaseLook)
	return nil
}

// leaderIdentity is "host_uuid_address:port"; the last part is left out when it is not known.
func leaderIdentity(host, id, address, probes string) string {
	_, port, err := net.SplitHostPort(probes)
	if err != nil || address == "" || port == "0" {
		return host + "_" + id
	}
	return host + "_" + id + "_" + net.JoinHostPort(address, port)
}

func addressIn(identity string) string {
	if parts := strings.Split(identity, "_"); len(parts) == 3 {
		return parts[2]
	}
	return ""
}

// Get reads the lease. That of a leader who is gone is told as free: to take it is a
// conditional write, which fails if the leader has renewed it meanwhile.
func (l *leaderLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err != nil { // what is known of the leader stays
		return nil, nil, err
	}
	l.holder = record.HolderIdentity
	switch {
	case record.HolderIdentity == "" || record.HolderIdentity == l.Identity():
		l.watch.follow("")
		return record, raw, nil
	}
	l.renewed = time.Time{}
	l.watch.follow(record.HolderIdentity)
	if silent, gone := l.watch.isGone(time.Now()); gone {
		l.log.Info("this operator takes the lead before the lease has run out, because the leader cannot be reached",
			"leader", record.HolderIdentity, "silentFor", silent.String())
		free := *record
		free.HolderIdentity = ""
		record = &free
	}
	return record, raw, nil
}

// Update writes the lease. A renewal is left out while the last one is fresh: what looks
// often must not write often.
func (l *leaderLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	isMine := record.HolderIdentity == l.Identity()
	if !isMine && l.holder != l.Identity() {
		return nil // another has it by now: there is nothing to give back
	}
	if isMine && time.Since(l.renewed) < leaseRenewal-leaseLook/2 {
		return nil
	}
	err := l.Interface.Update(ctx, record)
	l.renewed = time.Time{}
	if err == nil && isMine {
		l.renewed = time.Now()
	}
	return err
}

// leaderWatch tries whether the leader's Pod can be reached. The process in it may be slow,
// or end.
type leaderWatch struct {
	dial func(ctx context.Context, address string) error
	// reachesOthers reports whether this process reaches anybody but that leader. If it does
	// not, its own node is cut off: it would lead, and hear no instance but those beside it.
	reachesOthers func(ctx context.Context, leader string) bool

	mu       sync.Mutex
	identity string
	// reached: it was, since it leads. Whoever was never reached may be out of reach for
	// reasons of the network, and works.
	reached bool
	last    time.Time
	misses  int
}

// dial tells whether the leader's Pod is there. One that refuses the connection is: its
// process ends, and gives the lease back when it has, or it starts again.
func dial(ctx context.Context, address string) error {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET):
		return nil
	case err != nil:
		return err
	}
	return c.Close()
}

func (w *leaderWatch) run(ctx context.Context) {
	tick := time.NewTicker(leaseLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.look(ctx)
		}
	}
}

// look tries once.
func (w *leaderWatch) look(ctx context.Context) {
	w.mu.Lock()
	identity := w.identity
	w.mu.Unlock()
	address := addressIn(identity)
	if address == "" {
		return
	}
	began := time.Now()
	if inTime(ctx, func(ctx context.Context) bool { return w.dial(ctx, address) == nil }) {
		w.note(identity, began, true)
	} else if inTime(ctx, func(ctx context.Context) bool { return w.reachesOthers(ctx, identity) }) {
		w.note(identity, began, false)
	}
}

// inTime asks for no longer than dialLimit.
func inTime(ctx context.Context, ask func(context.Context) bool) bool {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	return ask(ctx)
}

func (w *leaderWatch) note(identity string, began time.Time, reached bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.identity != identity: // another leads by now
	case reached:
		w.reached, w.last, w.misses = true, began, 0
	default:
		w.misses++
	}
}

// follow says who leads; "" for this process or nobody.
func (w *leaderWatch) follow(identity string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.identity != identity {
		w.identity, w.reached, w.misses, w.last = identity, false, 0, time.Time{}
	}
}

// isGone reports whether the leader was reached before and is not any more, and for how long.
func (w *leaderWatch) isGone(now time.Time) (silent time.Duration, gone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	silent = now.Sub(w.last)
	return silent, w.reached && w.misses >= leaderMisses && silent >= leaderSilence
}

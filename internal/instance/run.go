package instance

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/logpipe"
	"cnmsql.co/internal/mysql"
)

// Run is PID 1 of an instance: it returns when mysqld has been stopped after a
// SIGTERM or SIGINT, or after ctx ended.
func Run(ctx context.Context, opt Options) error {
	opt = opt.withDefaults()
	lines := logpipe.New(opt.Log, func(dropped int) []byte { return droppedLine(opt.LogLevel, dropped) })
	defer func() { _ = lines.Close(logPatience) }()
	opt.Log = lines
	m := newManager(opt)
	m.log.Info("the instance manager starts", "instance", opt.Instance, "podUID", opt.PodUID, "node", opt.Node,
		"serverID", opt.ServerID)
	if opt.Kubernetes == nil {
		k, err := inCluster(opt.Namespace, opt.Cluster,
			func(err error) { m.log.Warn("cannot watch the Cluster; the manager tries again", "error", err) },
			m.token.answered)
		if err != nil {
			return err
		}
		m.kube = k
	}
	m.lease = &lease{kube: m.kube, me: opt.Instance}
	go func() {
		<-ctx.Done()
		m.terminate()
	}()
	left, err := readHandover()
	if err != nil {
		return err
	}
	if left != nil {
		if err := m.takeOver(left); err != nil {
			return fmt.Errorf("taking over from the manager before: %w", err)
		}
	}
	return m.run(context.WithoutCancel(ctx))
}

func newManager(opt Options) *manager {
	m := &manager{
		opt: opt, log: newLogger(opt.Log, opt.LogLevel), kube: opt.Kubernetes, tls: &tlsFiles{dirs: opt.Dirs},
		life:    life{boot: rand.Text(), began: time.Now(), ended: make(chan struct{})},
		changed: make(chan struct{}), bells: newBells(),
		st: state{mysqld: mysqldState{downSince: time.Now()}},
	}
	m.concerns = concernsOf(m)
	return m
}

// newLogger writes JSON lines in the words of the Cluster's logLevel.
func newLogger(w io.Writer, level string) *slog.Logger {
	levels := map[string]slog.Level{"error": slog.LevelError, "warning": slog.LevelWarn, "debug": slog.LevelDebug,
		"trace": slog.LevelDebug - 4}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: levels[level], ReplaceAttr: func(_ []string,
		a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			a.Key = "ts"
		}
		return a
	}}))
}

// logPatience is how long a manager that ends, or hands over, waits until its log was read.
const logPatience = 200 * time.Millisecond

// droppedLine tells that so many lines are lacking.
func droppedLine(level string, dropped int) []byte {
	var line bytes.Buffer
	newLogger(&line, level).Error("nobody read the output of the container for a time; lines of the log were dropped",
		"lines", dropped)
	return line.Bytes()
}

// run serves at once, so that everybody can see what the manager waits for, then
// gets hold of the volume, and works until it is told to end.
func (m *manager) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if os.Getpid() == 1 {
		go reapOrphans(ctx)
	}
	go m.awaitSignal(ctx)
	m.findServer(ctx)
	go m.leases.keepLease(ctx)
	go m.isolator.keepIsolating(ctx)
	if m.inherited {
		m.poll(ctx)
		m.worker.tell(agent.Decide(m.facts()), "") // who asks is not told of a beginning
	}
	servers, err := m.serve()
	if err != nil {
		return err
	}
	for _, goesOn := range m.beside() {
		go goesOn(ctx)
	}
	m.worker.work(ctx)
	return m.end(servers)
}

// beside are the concerns that go on by themselves beside the worker, each until its context ends.
// Who isolates the instance and who keeps the Lease are not among them: they begin before anybody is served.
func (m *manager) beside() []func(context.Context) {
	return []func(context.Context){
		m.replacer.knowBinary, m.prepare, m.keepPolling, m.voucher.keepVouched, m.disk.keepTryingDisk,
		m.room.keepMeasuring, m.publisher.keepPublished, m.keepLatest, newRinger(m).keepRinging,
		newCertificates(m).keepCertificates,
		m.follower.keepAsking,
		m.keeper.keepAccounts, m.archiver.keepArchived, m.archiver.keepLogs,
	}
}

// answers are given on the control API by the manager, and by what keeps its own state.
type answers struct {
	*manager // orders
	*reporter
	*voucher
	*checker
	*replacer
}

// findServer looks for mysqld and prepares the connections.
func (m *manager) findServer(ctx context.Context) {
	if !m.inherited {
		if err := m.launcher.lookForServer(ctx); err != nil {
			m.setProblem(err)
		}
	}
	for _, into := range []**mysql.Server{&m.pulse, &m.roles, &m.metrics} {
		*into = mysql.Open(m.opt.Dirs.socket(), m.launcher.version, m.accounts)
	}
	m.health = mysql.OpenForStatus(m.opt.Dirs.socket(), m.launcher.version, m.accounts)
	m.root = mysql.Open(m.opt.Dirs.socket(), m.launcher.version, m.opt.Dirs.rootAccounts)
}

// prepare gets hold of the volume and its data, and follows the Cluster.
func (m *manager) prepare(ctx context.Context) {
	if m.inherited || m.takeVolume(ctx) {
		m.kube.WatchCluster(ctx, m.setCluster)
	}
}

// pauses between attempts to take the volume.
const (
	volumePauseFirst = time.Second
	volumePauseMost  = 10 * time.Second
)

// takeVolume tries until the volume can be used, telling why it cannot: an I/O
// error may pass. false when ctx has ended before.
func (m *manager) takeVolume(ctx context.Context) bool {
	for pause := volumePauseFirst; ; pause = min(2*pause, volumePauseMost) {
		err := m.tryVolume(ctx)
		if err == nil || ctx.Err() != nil {
			return err == nil
		}
		m.log.Error("the manager cannot use the volume; it tries again", "error", err)
		m.setProblem(&namedError{core.Problem{Reason: core.InstanceVolumeUnusable, Message: err.Error()}, pause})
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
}

// tryVolume locks the volume and looks at its data.
func (m *manager) tryVolume(ctx context.Context) error {
	record, err := lockVolume(ctx, m.opt.Dirs.Meta)
	if err != nil {
		return err
	}
	data, foreign, err := record.dataState(m.opt.Dirs.Data)
	if err != nil {
		record.close()
		return err
	}
	m.mu.Lock()
	m.record = record
	m.mu.Unlock()
	m.update(func(s *state) {
		s.volume.locked, s.volume.data, s.volume.foreign = true, data, foreign
		s.mysqld.downSince = time.Now()
		r := record.get()
		s.cluster.seen = max(s.cluster.seen, r.NoWritesBelow, r.NoReceivingBelow)
		if s.cluster.view != nil { // it came before it was known what the volume remembers
			s.cluster.view = m.viewAfter(&s.cluster, s.cluster.object, s.cluster.view)
		}
		// No mysqld runs, and none will receive against the promise.
		s.volume.withheld, s.volume.withheldAt = r.NoReceivingBelow, time.Now()
	})
	m.log.Info("this manager holds the lock on the volume", "data", data, "foreign", foreign)
	return nil
}

// awaitSignal waits for the signal that the Pod is to be stopped, and notes since when the manager
// is terminating.
func (m *manager) awaitSignal(ctx context.Context) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	select {
	case <-ctx.Done():
		return
	case s := <-signals:
		m.log.Info("the kubelet asks this manager to stop", "signal", s.String())
		m.terminate()
	}
}

func (m *manager) terminate() {
	m.update(func(s *state) {
		if s.terminating.IsZero() {
			s.terminating = time.Now()
		}
	})
}

// end says goodbye: nothing runs any more, the lease is given back, and the last
// report has gone out before the connections are closed.
func (m *manager) end(servers []*http.Server) error {
	m.endActivity()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if held, _ := m.lease.held(); held != 0 {
		if err := m.lease.release(ctx, held); err != nil {
			m.log.Warn("cannot release the Lease of the primary", "error", err)
		}
	}
	m.update(func(s *state) {
		m.worker.set(func(w *workerState) {
			w.decision = agent.Decision{State: core.Stopped, Reason: core.InstanceTerminated,
				Message: "the instance was stopped"}
			w.trouble = nil
		})
		s.mysqld.ended = false
	})
	close(m.ended)
	for _, s := range servers {
		if err := s.Shutdown(ctx); err != nil {
			_ = s.Close()
		}
	}
	m.leaveVolume()
	m.log.Info("the instance manager ends")
	return nil
}

// leaveVolume flushes what the volume's next Pod could not show to be there, and gives the
// lock back.
func (m *manager) leaveVolume() {
	record := get(m, func(*state) *recordFile { return m.record })
	if record == nil {
		return
	}
	if !m.launcher.lastChild().running() {
		if err := m.provenance.flushRelayLogs(); err != nil {
			m.log.Warn("cannot flush the relay logs before this manager ends", "error", err)
		}
	}
	record.close()
}

// endActivity kills mysqld and breaks off what was begun, and waits for both, 10 s at most: after
// that nothing goes on, no mysqld runs, and none is started. What does not end in time is logged.
func (m *manager) endActivity() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	p := m.launcher.lastChild()
	m.update(func(s *state) { s.mysqld.stopRequested = p })
	if p.running() {
		if err := p.kill(ctx); err != nil {
			m.log.Error("cannot kill mysqld before this manager ends", "error", err)
		}
	}
	over := m.activities.cancel(nil)
	if over == nil {
		return
	}
	select {
	case <-over:
	case <-ctx.Done():
		m.log.Error("the manager ends, although work that it began has not ended")
	}
}

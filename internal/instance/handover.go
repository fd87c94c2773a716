package instance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/layout"
	"cnmsql.co/internal/logpipe"
	"cnmsql.co/internal/mysql"
)

// HandoverFormat is that of handover: a binary takes over from one that speaks the same.
const HandoverFormat = 1

// handover is what a manager leaves to the binary that takes its place in the same process:
// all that it knows and that neither the volume nor mysqld can tell. mysqld stays a child
// of the process, and the lock on the volume is never given back.
type handover struct {
	Format int `json:"format"`
	// Lock is the file descriptor of the lock on the volume.
	Lock    int               `json:"lock"`
	Cluster *v1alpha1.Cluster `json:"cluster"`
	// Volume is nil from a manager of a release that left the volume to be read again.
	Volume  *handoverVolume `json:"volume,omitempty"`
	Mysqld  *handoverMysqld `json:"mysqld,omitempty"`
	Lease   handoverLease   `json:"lease"`
	Vouches handoverVouches `json:"vouches"`
	Member  handoverMember  `json:"member"`
	// Command and Version are of the image's mysqld.
	Command []string      `json:"command"`
	Version mysql.Version `json:"version"`

	Seen       int64 `json:"seen"`
	Withheld   int64 `json:"withheld"`
	WithheldAt ticks `json:"withheldAt"`
	WasFenced  bool  `json:"wasFenced"`
	handoverLife
	Donor   string            `json:"donor"`
	Lagging bool              `json:"lagging"`
	Former  []handoverAccount `json:"former,omitempty"`
}

// handoverLife is what is left of mysqldState, whether a process runs or not. Its fields stand
// beside those of handover.
type handoverLife struct {
	DownSince ticks  `json:"downSince"`
	Ended     bool   `json:"ended"`
	EndReason string `json:"endReason"`
	Failures  int    `json:"failures"`
	Restarts  int    `json:"restarts"`
	Restart   int64  `json:"restart"`
	Checked   string `json:"checked"`
}

// handoverVolume is what the volume holds. Whoever takes over reads none of it: mysqld may be writable,
// and until somebody can stop its writes, nothing may wait for a volume that stalls.
type handoverVolume struct {
	Record  volumeRecord   `json:"record"`
	Data    core.DataState `json:"data"`
	Foreign bool           `json:"foreign"`
}

// handoverMysqld is the process that runs on.
type handoverMysqld struct {
	PID int `json:"pid"`
	// Output is the file descriptor of what it prints.
	Output   int   `json:"output"`
	Started  ticks `json:"started"`
	Accepted bool  `json:"accepted"`
	MayWrite bool  `json:"mayWrite"`
	Writable int64 `json:"writable"`
	// Follows is the external server that it follows as a primary.
	Follows string `json:"follows,omitempty"`
	// Server is what it said of itself last, when it was asked at ServerAt.
	Server   *core.Server `json:"server,omitempty"`
	ServerAt ticks        `json:"serverAt"`
}

type handoverVouches struct {
	Epoch int64            `json:"epoch"`
	Last  map[string]ticks `json:"last,omitempty"`
}

type handoverLease struct {
	Epoch   int64 `json:"epoch"`
	Renewed ticks `json:"renewed"`
}

type handoverMember struct {
	RebootEpoch   int64           `json:"rebootEpoch"`
	Settled       core.MemberRole `json:"settled"`
	ProtocolOf    string          `json:"protocolOf"`
	Admitted      string          `json:"admitted"`
	AdmittedEpoch int64           `json:"admittedEpoch"`
	RejoinHeld    bool            `json:"rejoinHeld"`
	Bootstraps    bool            `json:"bootstraps,omitempty"`
	WentOn        bool            `json:"wentOn,omitempty"`
	// JoinedCA and JoinedCert are the certificates of the membership.
	JoinedCA   []byte `json:"joinedCA,omitempty"`
	JoinedCert []byte `json:"joinedCert,omitempty"`
}

type handoverAccount struct{ User, Password string }

// ticks is a moment by this machine's monotonic clock, in nanoseconds; 0 is none. It
// means the same before and after, whatever becomes of the wall clock.
type ticks int64

func uptime() ticks {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // fails for an unknown clock only
	return ticks(ts.Nano())
}

func ticksOf(t time.Time) ticks {
	if t.IsZero() {
		return 0
	}
	return uptime() - ticks(time.Since(t))
}

func (t ticks) time() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.Now().Add(-time.Duration(uptime() - t))
}

// handOver makes this process the binary at path. It returns only when it fails, and
// then nothing has changed.
func (m *manager) handOver(path string) error {
	m.launcher.starting.Lock()
	defer m.launcher.starting.Unlock()
	children.mu.Lock() // no child inherits what is meant for the new binary
	defer children.mu.Unlock()
	if !m.disk.underway.TryLock() {
		return errors.New("a write to the volume is under way") // the process could not be exchanged before it ends
	}
	defer m.disk.underway.Unlock()
	if why := m.mayNotHandOver(); why != "" {
		return errors.New(why)
	}
	proc := get(m, func(s *state) *process { return s.mysqld.proc })
	if proc.running() {
		defer proc.output.stop()()
	}
	left, inherited, why := m.seize()
	if why != "" {
		return errors.New(why)
	}
	defer m.record.changing.Unlock()
	file, err := left.write()
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	inherited = append(inherited, int(file.Fd()))
	if lines, mayWait := m.opt.Log.(*logpipe.Writer); mayWait {
		_ = lines.Flush(logPatience)
	}
	return become(path, inherited, file)
}

// mayNotHandOver tells what the manager has in hand that it cannot hand over; "" when there is
// nothing.
func (m *manager) mayNotHandOver() string {
	if m.launcher.server().missing != nil {
		return "mysqld was not found"
	}
	return m.facts().MayNotHandOver()
}

// seize gathers what is handed over, and keeps the record from being changed after that; or it tells
// what the manager has in hand that it cannot hand over. The record is seized under the mutex and
// without waiting: whoever takes a view waits for the record while it holds the mutex.
func (m *manager) seize() (left *handover, inherited []int, why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if why := m.known().MayNotHandOver(); why != "" {
		return nil, nil, why
	}
	if !m.record.changing.TryLock() {
		return nil, nil, "what the manager must remember is being kept"
	}
	left, inherited = leftBy(m)
	return left, inherited, ""
}

// leftBy gathers what is handed over, and the file descriptors that go with it; the mutex is held.
func leftBy(m *manager) (*handover, []int) {
	s := &m.st
	epoch, renewed := m.lease.held()
	bin := m.launcher.server()
	l := &handover{
		Format: HandoverFormat, Lock: int(m.record.lock.Fd()), Cluster: s.cluster.object,
		Volume: &handoverVolume{Record: m.record.get(), Data: s.volume.data, Foreign: s.volume.foreign},
		Lease:  handoverLease{Epoch: epoch, Renewed: ticksOf(renewed)}, Vouches: m.voucher.left(),
		Command: bin.command, Version: bin.version,
		Member: m.membership.left(), Seen: s.cluster.seen, WasFenced: m.worker.said().wasFenced,
		Withheld: s.volume.withheld, WithheldAt: ticksOf(s.volume.withheldAt),
		handoverLife: s.mysqld.left(), Donor: m.cloner.said().donor, Lagging: s.status.lagging,
	}
	l.Checked = m.configurer.checked()
	for _, a := range s.access.former {
		l.Former = append(l.Former, handoverAccount(a))
	}
	inherited := []int{l.Lock}
	if p := s.mysqld.proc; p.running() {
		l.Mysqld = &handoverMysqld{PID: p.handle.Pid, Output: p.output.fd(), Started: ticksOf(p.started),
			Accepted: s.mysqld.accepted, MayWrite: s.mysqld.mayWrite, Writable: s.mysqld.writable,
			Follows: s.mysqld.follows,
			Server:  s.status.server, ServerAt: ticksOf(s.status.at)}
		inherited = append(inherited, l.Mysqld.Output)
	}
	return l, inherited
}

// write puts it into a file that has no name: there are passwords in it.
func (l *handover) write() (*os.File, error) {
	fd, err := unix.MemfdCreate("handover", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("writing what is handed over: %w", err)
	}
	f := os.NewFile(uintptr(fd), "handover")
	if err := json.NewEncoder(f).Encode(l); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("writing what is handed over: %w", err)
	}
	return f, nil
}

// become executes path in this process, which keeps its children and the given file
// descriptors. A SIGTERM that comes before the new binary listens is lost, or ends it as a crash
// would: Go unblocks at its start whatever ends a program, so that it cannot
// be held back (runtime.blockableSig).
func become(path string, inherited []int, handover *os.File) error {
	for _, fd := range inherited {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return fmt.Errorf("handing over a file descriptor: %w", err)
		}
		defer syscall.CloseOnExec(fd)
	}
	env := append(os.Environ(), layout.EnvHandover+"="+strconv.Itoa(int(handover.Fd())))
	if err := syscall.Exec(path, os.Args, env); err != nil {
		return fmt.Errorf("executing %s: %w", path, err)
	}
	return nil
}

// readHandover reads what an earlier manager in this process has left; nil when there was
// none. Nobody else is to inherit it.
func readHandover() (*handover, error) {
	text := os.Getenv(layout.EnvHandover)
	if text == "" {
		return nil, nil
	}
	if err := os.Unsetenv(layout.EnvHandover); err != nil {
		return nil, err
	}
	fd, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("%s is %q: it must be a file descriptor", layout.EnvHandover, text)
	}
	f := os.NewFile(uintptr(fd), "handover")
	defer func() { _ = f.Close() }()
	l := &handover{}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("reading what was handed over: %w", err)
	}
	if err := json.NewDecoder(f).Decode(l); err != nil {
		return nil, fmt.Errorf("reading what was handed over: %w", err)
	}
	if l.Format != HandoverFormat {
		return nil, fmt.Errorf("what was handed over is of format %d, and this manager reads format %d",
			l.Format, HandoverFormat)
	}
	syscall.CloseOnExec(l.Lock)
	if l.Mysqld != nil {
		syscall.CloseOnExec(l.Mysqld.Output)
	}
	return l, nil
}

// takeOver goes on where the earlier manager of this process was.
func (m *manager) takeOver(l *handover) error {
	record := inheritVolume(m.opt.Dirs.Meta, l.Lock)
	volume, err := l.volume(record, m.opt.Dirs.Data)
	if err != nil {
		return err
	}
	record.inherit(volume.Record)
	m.mu.Lock()
	m.record = record
	m.mu.Unlock()
	m.launcher.setServer(binary{command: l.Command, version: l.Version})
	m.configurer.setChecked(l.Checked)
	m.membership.inherit(l.Member)
	m.voucher.inherit(l.Vouches)
	m.cloner.order(l.Donor)
	m.worker.set(func(w *workerState) { w.wasFenced = l.WasFenced })
	m.lease.hold(l.Lease.Epoch, l.Lease.Renewed.time())
	m.update(func(s *state) { s.inherit(l, volume) })
	if l.Mysqld != nil {
		if err := m.takeOverMysqld(l.Mysqld); err != nil {
			return err
		}
	}
	m.setCluster(l.Cluster)
	m.inherited = true
	m.log.Info("this manager replaced the former one in place", "epoch", l.Seen, "mysqld", l.Mysqld != nil)
	return nil
}

// volume is what the volume holds: what was handed over, or, from a manager that left it to be read, what
// is there.
func (l *handover) volume(record *recordFile, dataDir string) (*handoverVolume, error) {
	if l.Volume != nil {
		return l.Volume, nil
	}
	if err := record.load(); err != nil {
		return nil, err
	}
	v := &handoverVolume{Record: record.get()}
	var err error
	v.Data, v.Foreign, err = record.dataState(dataDir)
	return v, err
}

func (s *state) inherit(l *handover, v *handoverVolume) {
	s.volume.locked, s.volume.data, s.volume.foreign = true, v.Data, v.Foreign
	s.volume.withheld, s.volume.withheldAt = l.Withheld, l.WithheldAt.time()
	s.cluster.seen = l.Seen
	s.status.lagging = l.Lagging
	s.mysqld.inherit(l.handoverLife)
	for _, a := range l.Former {
		s.access.former = append(s.access.former, mysql.Account(a))
	}
}

func (m *manager) takeOverMysqld(l *handoverMysqld) error {
	p, err := m.launcher.inherit(l.PID, l.Output, l.Started.time())
	if err != nil {
		return err
	}
	m.update(func(s *state) {
		s.mysqld.proc, s.mysqld.accepted, s.mysqld.mayWrite = p, l.Accepted, l.MayWrite
		s.mysqld.writable, s.mysqld.follows = l.Writable, l.Follows
		s.status.answered, s.status.server, s.status.at = time.Now(), l.Server, l.ServerAt.time()
	})
	m.attend(p)
	return nil
}

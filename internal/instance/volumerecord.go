package instance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// stage is how far the making of data has come. Only data of an unfinished stage
// may ever be removed by the manager.
type stage string

const (
	stageNone          stage = ""
	stageInitializing  stage = "Initializing"  // mysqld --initialize is writing it
	stageBootstrapping stage = "Bootstrapping" // accounts and database are being made
	stageScratch       stage = "Scratch"
	stagePopulated     stage = "Populated"
)

// volumeRecord is what must survive the manager, kept on the volume.
type volumeRecord struct {
	ClusterUID string `json:"clusterUID,omitempty"`
	Instance   string `json:"instance,omitempty"`
	ServerID   uint32 `json:"serverID,omitempty"`
	Stage      stage  `json:"dataState,omitempty"`
	// NoWritesBelow is the promise not to accept a write in any epoch below it.
	NoWritesBelow int64 `json:"fencedBelow,omitempty"`
	// NoReceivingBelow is the promise to receive nothing and to vouch for nobody in any
	// epoch below it.
	NoReceivingBelow int64 `json:"frozenBelow,omitempty"`
	WasPrimaryEpoch  int64 `json:"wasPrimaryEpoch,omitempty"`
	// ViewEpoch is the highest epoch that the Cluster's status was seen to have.
	ViewEpoch int64 `json:"viewEpoch,omitempty"`
	// Acks that commits waited for last, in AcksEpoch.
	Acks      int   `json:"acks,omitempty"`
	AcksEpoch int64 `json:"acksEpoch,omitempty"`
	// AcksOrder is the number of the last order about them that was obeyed in AcksEpoch.
	AcksOrder int64 `json:"acksOrder,omitempty"`
	// TailEpoch is the epoch in which commits wait for acknowledgements without
	// which nobody can read success; kept until mysqld has surely ended, or been
	// made read-only, with none waiting.
	TailEpoch int64 `json:"tailEpoch,omitempty"`
	// TailBase was executed when commits began to wait in TailEpoch: what is in it may
	// have been acknowledged on other terms.
	TailBase string `json:"tailBase,omitempty"`
	// Received is what is known of relay logs that were not flushed. A release that had each
	// event flushed knows nothing of it.
	Received received `json:"received,omitzero"`
	groupHistory
	// Accounts is a digest of the Secrets that were followed here last. It counts where the data tell
	// nothing: those of a release that did not note it there.
	Accounts string `json:"accounts,omitempty"`
	// RestoredBackup is the id of the backup that the data began with, RestoredUntil the
	// moment, in RFC 3339, up to which they were restored.
	RestoredBackup string `json:"restoredBackup,omitempty"`
	RestoredUntil  string `json:"restoredUntil,omitempty"`
	// Restored is how that came about, for people.
	Restored *core.Restore `json:"restored,omitempty"`
	// RestoreFailures is how often that was tried in vain.
	RestoreFailures restoreFailures `json:"restoreFailures,omitzero"`
}

// groupHistory is of which history of a group the data are.
type groupHistory struct {
	// GroupOf is the group that the data has been a member of, and GroupRecovery the last of its recoveries
	// that they went through; releases before this one did not note that.
	GroupOf       string `json:"groupOf,omitempty"`
	GroupRecovery int64  `json:"groupRecovery,omitempty"`
	// GroupDoubted tells that the group may have had another recovery since.
	GroupDoubted bool `json:"groupDoubted,omitempty"`
	// Former is the lineage that the data had in a deleted Cluster, until this one has had a primary.
	Former core.Lineage `json:"former,omitzero"`
}

// lineage is what is remembered of the group that the data are of.
func (r *groupHistory) lineage() core.Lineage {
	return core.Lineage{Group: r.GroupOf, Recovery: r.GroupRecovery, Doubted: r.GroupDoubted}
}

func (r *groupHistory) setLineage(l core.Lineage) {
	r.GroupOf, r.GroupRecovery, r.GroupDoubted = l.Group, l.Recovery, l.Doubted
}

// leaves is the lineage of the data for a Cluster that adopts them.
func (r *groupHistory) leaves() core.Lineage {
	if r.GroupOf == "" {
		return r.Former
	}
	return r.lineage()
}

// promised is what is remembered of acknowledgements.
func (r *volumeRecord) promised() agent.Promised {
	return agent.Promised{Acks: r.Acks, Epoch: r.AcksEpoch, Order: r.AcksOrder, TailEpoch: r.TailEpoch}
}

func (r *volumeRecord) setPromised(p agent.Promised) {
	r.Acks, r.AcksEpoch, r.AcksOrder, r.TailEpoch = p.Acks, p.Epoch, p.Order, p.TailEpoch
	if !p.MayHaveTail() {
		r.TailBase = ""
	}
}

// promises is what is remembered of promises about epochs.
func (r *volumeRecord) promises() agent.Kept {
	return agent.Kept{NoWritesBelow: r.NoWritesBelow, NoReceivingBelow: r.NoReceivingBelow,
		LastWritable: r.WasPrimaryEpoch}
}

// received is agent.Cached as it is kept.
type received struct {
	Unflushed bool   `json:"unflushed,omitempty"`
	Boot      string `json:"boot,omitempty"`
	Mount     string `json:"mount,omitempty"`
	Node      string `json:"node,omitempty"`
	MayLack   bool   `json:"mayLack,omitempty"`
	Noted     bool   `json:"noted,omitempty"`
}

// cached is what is remembered of relay logs that were not flushed.
func (r *volumeRecord) cached() agent.Cached {
	k := r.Received
	in := agent.Residence{Boot: k.Boot, Mount: k.Mount, Node: k.Node}
	return agent.Cached{Unflushed: k.Unflushed, In: in, MayLack: k.MayLack, Noted: k.Noted}
}

func (r *volumeRecord) setCached(c agent.Cached) {
	in := c.In
	r.Received = received{Unflushed: c.Unflushed, Boot: in.Boot, Mount: in.Mount, Node: in.Node, MayLack: c.MayLack,
		Noted: c.Noted}
}

// recordFile keeps the volumeRecord in a file.
type recordFile struct {
	dir string

	// changing lets one change after the other be kept. A disk that stalls holds it
	// for as long as it does; mu is held for moments only, so that whoever only asks
	// goes on.
	changing sync.Mutex
	mu       sync.Mutex
	now      volumeRecord
	lock     *os.File
	closed   bool // guarded by changing
	// length is of the text on the volume, guarded by changing.
	length int
}

// lockVolume waits until no other manager uses the volume: the former container
// of this Pod, or of another Pod on this node, may still be ending.
func lockVolume(ctx context.Context, dir string) (*recordFile, error) {
	return lockAndSync(ctx, dir, syncDir)
}

// lockAndSync is lockVolume, with what brings to disk which files are in the directory of one.
func lockAndSync(ctx context.Context, dir string, sync func(file string) error) (*recordFile, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("making the manager's directory on the volume: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o640)
	if err != nil {
		return nil, fmt.Errorf("opening the lock on the volume: %w", err)
	}
	m := &recordFile{dir: dir, lock: f}
	if err = m.awaitLock(ctx); err == nil {
		err = m.loadDurably(sync)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	// mysqld, which may fill the volume, is started later. Where there is no room now,
	// keepLatest tries again, and tells.
	_ = m.keepRoom()
	return m, nil
}

// awaitLock takes the lock as soon as nobody else has it.
func (m *recordFile) awaitLock(ctx context.Context) error {
	tick := time.NewTicker(agent.LockRetry)
	defer tick.Stop()
	for {
		err := unix.Flock(int(m.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return fmt.Errorf("locking %s: %w", m.lock.Name(), err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// loadDurably reads what is remembered, and what survives a power loss. A manager that was killed while it kept a
// change may have left the new text under the file's name in the page cache alone: whoever told a promise by it
// could forget it.
func (m *recordFile) loadDurably(sync func(file string) error) error {
	if err := sync(m.file()); err != nil {
		return fmt.Errorf("bringing to disk what the manager remembers: %w", err)
	}
	return m.load()
}

// inheritVolume goes on with a lock that this process has. It asks nothing of the volume.
func inheritVolume(dir string, lock int) *recordFile {
	return &recordFile{dir: dir, lock: os.NewFile(uintptr(lock), filepath.Join(dir, "lock"))}
}

// inherit goes on with what is on the volume, as the manager before knew it.
func (m *recordFile) inherit(now volumeRecord) {
	m.now = now
	text, _ := json.MarshalIndent(now, "", "  ") // strings and numbers; it could be kept
	m.length = len(text)
}

func (m *recordFile) file() string { return filepath.Join(m.dir, "state.json") }

// load reads what is remembered.
func (m *recordFile) load() error {
	text, err := os.ReadFile(m.file())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading what the manager remembers: %w", err)
	}
	if err := json.Unmarshal(text, &m.now); err != nil {
		return fmt.Errorf("reading what the manager remembers in %s: %w; the file was damaged from outside",
			m.file(), err)
	}
	m.length = len(bytes.TrimRight(text, "\n"))
	return nil
}

// keepRoom has room on the volume for the next change, if it is not there yet. It is in nobody's way
// but that of another change, and does nothing once the lock was given back.
func (m *recordFile) keepRoom() error {
	m.changing.Lock()
	defer m.changing.Unlock()
	if m.closed {
		return nil
	}
	return spared{m.file()}.keepRoom(m.length)
}

func (m *recordFile) get() volumeRecord {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// change keeps a change; when it returns nil, the change survives a power loss. Whoever promises acts
// on it at once: room for the next change is made later, by keepLatest.
func (m *recordFile) change(f func(*volumeRecord)) error {
	m.changing.Lock()
	defer m.changing.Unlock()
	if m.closed {
		return errors.New("keeping what the manager must remember: the lock on the volume was given back")
	}
	before := m.get()
	next := before
	f(&next)
	if next == before {
		return nil
	}
	text, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		return err
	}
	if err := (spared{m.file()}).write(append(text, '\n')); err != nil {
		return fmt.Errorf("keeping what the manager must remember: %w", err)
	}
	m.length = len(text)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = next
	return nil
}

func (m *recordFile) cached() agent.Cached {
	r := m.get()
	return r.cached()
}

// syncVolume waits until all that was written to the volume is on the disk. It fails when
// something could not be written since the lock was taken, which is before mysqld was
// started, or before that, if nobody has been told yet.
func (m *recordFile) syncVolume() error {
	if err := unix.Syncfs(int(m.lock.Fd())); err != nil {
		return fmt.Errorf("writing back what the volume's page cache has: %w", err)
	}
	return nil
}

// close gives the lock back: what is on the volume is another manager's from now on.
func (m *recordFile) close() {
	m.changing.Lock()
	defer m.changing.Unlock()
	m.closed = true
	_ = m.lock.Close()
}

// writeDurably replaces a file, so that after a crash it is the old or the new one.
func writeDurably(file string, text []byte) error {
	f, err := os.OpenFile(file+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(file+".new", file); err != nil {
		return err
	}
	return syncDir(file)
}

// dataState tells what the volume holds. Files that nobody remembers having made
// are foreign. A directory that cannot be read is not an empty one.
func (m *recordFile) dataState(dataDir string) (state core.DataState, foreign bool, err error) {
	entries, err := os.ReadDir(dataDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return core.DataUnknown, false, fmt.Errorf("looking at the data on the volume: %w", err)
	}
	switch s := m.get().Stage; {
	case s == stageNone && len(entries) > 0:
		return core.DataUnknown, true, nil
	case len(entries) == 0:
		return core.DataEmpty, false, nil
	case s == stagePopulated:
		return core.DataPopulated, false, nil
	case s == stageScratch:
		return core.DataScratch, false, nil
	}
	return core.DataEmpty, false, nil
}

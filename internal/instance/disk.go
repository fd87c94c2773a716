package instance

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

const (
	diskTryInterval = time.Second
	// diskStallLimit is how long the volume may take for one small write before the
	// primary counts as hung: longer than a disk that is merely busy needs.
	diskStallLimit = 6 * time.Second
)

// diskTrier finds a volume that completes no write any more.
type diskTrier struct {
	dir string // on the volume
	log *slog.Logger
	by  triedOn

	// underway is held while the volume is tried.
	underway sync.Mutex

	mu sync.Mutex
	// trying is since when a write to the volume is tried that has not been completed: it has not ended
	// yet, or each since then has failed. Zero when there is none.
	trying time.Time
}

// triedOn is what a diskTrier asks of its manager.
type triedOn interface {
	// triesDisk: mysqld may write, or is silent, perhaps for it waits for its volume.
	triesDisk() bool
}

func newDiskTrier(m *manager) *diskTrier { return &diskTrier{dir: m.opt.Dirs.Meta, log: m.log, by: m} }

// keepTryingDisk finds a volume that completes no write any more. mysqld goes on
// answering whatever needs none, so that nobody else would notice.
func (d *diskTrier) keepTryingDisk(ctx context.Context) {
	tick := newTicker(diskTryInterval)
	defer tick.Stop()
	var file *os.File
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			tick.again()
		}
		if d.by.triesDisk() {
			file = d.tryVolumeOnce(file)
		} else {
			d.completes()
		}
	}
}

func (d *diskTrier) tryVolumeOnce(file *os.File) *os.File {
	d.underway.Lock()
	defer d.underway.Unlock()
	d.tries(time.Now())
	file, err := tryDisk(file, filepath.Join(d.dir, "try"))
	if err != nil {
		d.log.Warn("cannot write to the volume", "error", err)
	}
	if err != nil && !isLackOfRoom(err) { // a full volume is told of by itself, and mysqld waits for room
		return file
	}
	if took := d.completes(); took > diskStallLimit {
		d.log.Warn("the volume completed a write that had stalled", "after", took.String())
	}
	return file
}

func isLackOfRoom(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// tries wakes nobody: what follows from it is looked at with every answer of mysqld.
func (d *diskTrier) tries(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.trying.IsZero() {
		d.trying = now
	}
}

// completes ends what tries has begun, and tells how long it took.
func (d *diskTrier) completes() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	took := time.Since(d.trying)
	d.trying = time.Time{}
	return took
}

// tryDisk writes one byte over another and waits until the disk has it. The file is
// opened once.
func tryDisk(file *os.File, name string) (*os.File, error) {
	if file == nil {
		var err error
		if file, err = os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
			return nil, err
		}
	}
	if _, err := file.WriteAt([]byte{'.'}, 0); err != nil {
		return file, err
	}
	return file, unix.Fdatasync(int(file.Fd()))
}

// volumeState is what is known of the volume, and since when a promise is kept that it holds.
type volumeState struct {
	locked bool
	// foreign: it holds data of another Cluster, or such as nobody remembers having made.
	foreign bool
	data    core.DataState
	// withheld is the epoch below which nothing is received, surely since withheldAt.
	withheld   int64
	withheldAt time.Time
}

// keepsPromise is the promise to receive nothing that is kept, of those on the volume; nil when there is none.
func (s *volumeState) keepsPromise(kept agent.Kept) *core.Withheld {
	if !kept.StillWithholds(s.withheld) {
		return nil
	}
	return &core.Withheld{Below: s.withheld, Seconds: int(time.Since(s.withheldAt).Seconds())}
}

// stalls reports whether the volume completes no write: one has been tried, in one go or with errors, for
// longer than diskStallLimit.
func (d *diskTrier) stalls() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.trying.IsZero() && time.Since(d.trying) > diskStallLimit
}

// What a diskTrier asks of its manager.

func (m *manager) triesDisk() bool {
	_, may := m.mayWrite()
	return may || get(m, func(s *state) bool {
		return s.volume.locked && s.mysqld.accepted && s.mysqld.proc.running() &&
			s.status.misses >= agent.UnansweredLimit
	})
}

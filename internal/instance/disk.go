package instance

import (
	"context"
	"os"
	"path/filepath"
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

// keepTryingDisk finds a volume that completes no write any more. mysqld goes on
// answering whatever needs none, so that nobody else would notice.
func (m *manager) keepTryingDisk(ctx context.Context) {
	tick := time.NewTicker(diskTryInterval)
	defer tick.Stop()
	var file *os.File
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if m.triesDisk() {
			file = m.tryVolumeOnce(file)
		}
	}
}

// triesDisk: mysqld may write, or is silent, perhaps for it waits for its volume.
func (m *manager) triesDisk() bool {
	_, may := m.mayWrite()
	return may || get(m, func(s *state) bool {
		return s.volume.locked && s.mysqld.accepted && s.mysqld.proc.running() &&
			s.status.misses >= agent.UnansweredLimit
	})
}

func (m *manager) tryVolumeOnce(file *os.File) *os.File {
	m.tryingDisk.Lock()
	defer m.tryingDisk.Unlock()
	began := time.Now()
	m.noteDisk(began)
	file, err := tryDisk(file, filepath.Join(m.opt.Dirs.Meta, "try"))
	if err != nil {
		m.log.Warn("trying to write to the volume", "error", err)
	}
	if took := time.Since(began); took > diskStallLimit {
		m.log.Warn("the volume has completed a write", "after", took.String())
	}
	m.noteDisk(time.Time{})
	return file
}

// noteDisk wakes nobody: what follows from it is looked at with every answer of
// mysqld.
func (m *manager) noteDisk(trying time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.st.volume.trying = trying
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
	// trying is when the write to the volume began that has not ended yet; zero when there is
	// none.
	trying time.Time
}

// stalls: the volume completes no write.
func (s *volumeState) stalls() bool {
	return !s.trying.IsZero() && time.Since(s.trying) > diskStallLimit
}

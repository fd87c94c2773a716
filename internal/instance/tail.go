package instance

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"cnmsql.co/internal/binlog"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/gtid"
)

// tailsDir is where what was cut off is kept, in the manager's directory on the volume.
const tailsDir = "tails"

// tailCutter cuts what nobody acknowledged off the binary log of a mysqld that has ended. It asks
// nothing of its manager.
type tailCutter struct {
	dirs Dirs
	log  *slog.Logger
}

// cut cuts the last binary log. A log that cannot be judged is left as it is:
// recovery commits what it holds, and the check before following finds it.
func (c tailCutter) cut(a agent.CutTail) error {
	log, err := binlog.Last(c.dirs.binlogIndex())
	if err != nil {
		return err
	}
	if err := c.renewUUID(); err != nil {
		return err
	}
	tail, kept, err := binlog.CutTail(log, a.Held, filepath.Join(c.dirs.Meta, tailsDir))
	switch {
	case isRefused(err):
		c.log.Warn("cannot cut the unacknowledged suffix off the binary log; this instance may come back diverged",
			"log", log, "error", err)
	case errors.Is(err, unix.ENOSPC): // what is cut off is kept on the same volume
		return diskFull(err.Error())
	case err != nil:
		return err
	case tail.Offset != 0:
		c.log.Info("cut the unacknowledged suffix off the binary log; a copy is kept", "log", log, "transactions",
			tail.Transactions.String(), "kept", kept)
	default:
		c.log.Info("nothing is cut off the binary log: the promotion requires all that it holds", "log", log)
	}
	return nil
}

// renewUUID has mysqld begin with another server UUID. The numbers of what is cut
// off were given already, and a replica that received them without acknowledging
// would take later transactions of the same numbers for these.
func (c tailCutter) renewUUID() error {
	err := os.Remove(filepath.Join(c.dirs.Data, "auto.cnf"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("renewing the server's UUID: %w", err)
	}
	return nil
}

// isRefused reports whether an error says that the log is readable and must not be cut.
func isRefused(err error) bool {
	for _, no := range []error{binlog.ErrEncrypted, binlog.ErrTagged, binlog.ErrAnonymous, binlog.ErrInterleaved,
		binlog.ErrNotABinlog} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// tail is the epoch in which the log may end in transactions that nobody acknowledged, and
// what was executed before. What cannot be read is no ground to cut anything: 0.
func (r volumeRecord) tail() (int64, gtid.Set) {
	base, err := gtid.Parse(r.TailBase)
	if err != nil {
		return 0, gtid.Set{}
	}
	return r.TailEpoch, base
}

// forgetTail forgets that the log may end in what nobody acknowledged: no commit is waiting for acknowledgements any
// more.
func (m *manager) forgetTail() error {
	if !m.acks.promised().MayHaveTail() {
		return nil
	}
	return m.record.change(func(r *volumeRecord) { r.TailEpoch = 0 })
}

package instance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"cnmsql.co/internal/core"
)

const (
	// endingStall is how long a mysqld that ends on restored data may write nothing. As long as it
	// writes it is left to end: its dirty pages may be most of the memory, and to begin anew would
	// take longer still.
	endingStall = 10 * time.Minute
	// endingLook is between two looks at what it has written.
	endingLook = 5 * time.Second
	// endingTold is between two lines in the log about that.
	endingTold = time.Minute
)

// endCleanly has mysqld write all to its files and end. The redo log of a snapshot may hold
// what only the first recovery of it forgives (a key of the donor's, of a table that is gone
// by now): a crash soon after would find it again, and mysqld would not start any more. Then all
// that it has written is brought to disk. It is started as at any other time once the data count.
func (r *restorer) endCleanly(ctx context.Context) error {
	proc := r.by.server()
	r.by.noteStopRequested(proc)
	r.by.resetConnections()
	r.root().Reset() // mysqld waits two seconds for sessions to end
	proc.signal(syscall.SIGTERM)
	written := func() (int64, error) { return writtenBy(proc.handle.Pid) }
	if err := r.awaitEnding(ctx, proc.done, written); err != nil {
		return err
	}
	if !proc.exit.Success() {
		return proc.diagnose(core.InstanceRestoreFailed, "mysqld did not end cleanly on the restored data")
	}
	return r.record().syncVolume()
}

// awaitEnding waits for the end of a process for as long as it writes.
func (r *restorer) awaitEnding(ctx context.Context, done <-chan struct{}, written func() (int64, error)) error {
	tick := time.NewTicker(endingLook)
	defer tick.Stop()
	var last int64
	var unknown error // why it could not be told last
	began := time.Now()
	progress, told := began, began
	for {
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		var now int64
		if now, unknown = written(); unknown == nil && now != last {
			last, progress = now, time.Now()
		}
		if silent := time.Since(progress); silent >= endingStall {
			return givenUp(time.Since(began), silent, unknown)
		}
		if time.Since(told) >= endingTold {
			told = time.Now()
			r.log.Info("mysqld writes all data to its files, and then stops", "after", time.Since(began).Round(
				time.Second).String(), "writtenBytes", last, "error", unknown)
		}
	}
}

// givenUp is why a mysqld is not waited for any more that was told to end: it has been silent for so
// long, or nobody could tell whether it was.
func givenUp(since, silent time.Duration, unknown error) error {
	why := fmt.Sprintf("has written nothing for %s", silent.Round(time.Second))
	if unknown != nil {
		why = fmt.Sprintf("it is not known whether it writes: %v", unknown)
	}
	return &namedError{core.Problem{Reason: core.InstanceRestoreFailed, Message: fmt.Sprintf("mysqld was told to end "+
		"on the restored data %s ago, and %s: look at the volume; the restore begins anew",
		since.Round(time.Second), why)}, restoreAgain}
}

var bytesWritten = regexp.MustCompile(`(?m)^(?:wchar|write_bytes): (\d+)$`)

// writtenBy is how much a process has written since its start. Linux counts what goes past the page
// cache in one row only, and what stays in memory in the other only.
func writtenBy(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return 0, fmt.Errorf("asking how much mysqld has written: %w", err)
	}
	rows := bytesWritten.FindAllSubmatch(text, -1)
	if len(rows) == 0 {
		return 0, errors.New("asking how much mysqld has written: the kernel does not count it")
	}
	var sum int64
	for _, row := range rows {
		n, err := strconv.ParseInt(string(row[1]), 10, 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

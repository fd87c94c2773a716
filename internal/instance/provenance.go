package instance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"cnmsql.co/internal/core/agent"
)

// kernel is where the kernel tells of itself; tests have another.
type kernel struct{ proc, sys string }

var thisKernel = kernel{"/proc", "/sys"}

// residence is the page cache in which what mysqld writes lives on.
func (k kernel) residence(dir, pod, node string) (agent.Residence, error) {
	boot, err := os.ReadFile(filepath.Join(k.proc, "sys/kernel/random/boot_id"))
	if err != nil {
		return agent.Residence{}, fmt.Errorf("asking the kernel for its boot: %w", err)
	}
	mount, err := k.mountOf(dir, pod)
	if err != nil {
		return agent.Residence{}, err
	}
	return agent.Residence{Boot: strings.TrimSpace(string(boot)), Mount: mount, Node: node}, nil
}

// mountOf identifies the mount of a directory's filesystem: by its device, which a volume that
// was away may have again, and by the directory that the filesystem has in sysfs while it is
// mounted, of which the inode is another one each time. Some filesystems have none there. The
// kubelet keeps a volume mounted for as long as the Pod lasts, so that the Pod stands for it.
func (k kernel) mountOf(dir, pod string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return "", fmt.Errorf("asking for the device of %s: %w", dir, err)
	}
	device := fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
	if link, err := os.Readlink(filepath.Join(k.sys, "dev/block", device)); err == nil {
		found, _ := filepath.Glob(filepath.Join(k.sys, "fs/*", filepath.Base(link)))
		var in unix.Stat_t
		if len(found) == 1 && unix.Stat(found[0], &in) == nil {
			return fmt.Sprintf("%s %s %d", device, filepath.Base(link), in.Ino), nil
		}
	}
	return device + " in Pod " + pod, nil
}

// provenance keeps on the volume what became of transactions that were received and not flushed:
// whether the page cache in which they are lived on.
type provenance struct {
	opt Options
	log *slog.Logger
	by  provided
	// flush is the worker's: the volume is being asked whether it could write all; nil if not.
	flush *flushing
}

// provided is what provenance asks of its manager, once it has its volume.
type provided interface {
	// cached is what the volume remembers of it, and keep changes what it remembers.
	cached() agent.Cached
	keep(change func(*volumeRecord)) error
	// syncVolume waits until all of the volume is on the disk.
	syncVolume() error
	// retell has the report made again.
	retell()
}

func newProvenance(m *manager) *provenance { return &provenance{opt: m.opt, log: m.log, by: m} }

// here is this instance's residence; zero where it cannot be told.
func (p *provenance) here() agent.Residence {
	r, err := thisKernel.residence(p.opt.Dirs.Meta, p.opt.PodUID, p.opt.Node)
	if err != nil {
		p.log.Warn("it is not known whether the page cache survived", "error", err)
	}
	return r
}

// flushing is a look whether the volume could write all that was received.
type flushing struct {
	before agent.Cached
	done   chan error
}

// noteStart remembers before mysqld is started what became of what it had received and not
// flushed. drops says that mysqld is to start without its relay logs. A volume that takes long
// is waited for until ctx ends; the next call goes on waiting.
func (p *provenance) noteStart(ctx context.Context, drops bool) error {
	before, start := p.by.cached(), agent.Start{Here: p.here(), Drops: drops}
	if p.flush == nil {
		if !before.Unflushed {
			return nil
		}
		if start.Here != before.In || drops {
			return p.noteStarted(before, start)
		}
		if err := p.beginFlush(before); err != nil {
			return err
		}
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-p.flush.done:
		before, p.flush = p.flush.before, nil
		if start.Failed = err != nil; start.Failed {
			p.log.Warn("the volume reports that some data was not written", "error", err)
		}
		return p.noteStarted(before, start)
	}
}

func (p *provenance) noteStarted(before agent.Cached, start agent.Start) error {
	after := before.Starts(start)
	if after.MayLack && !before.MayLack {
		p.log.Warn("this instance may lack what it acknowledged: what it had received was not flushed, and may be gone",
			"was", before.In, "is", start.Here)
	}
	return p.setCached(after)
}

// beginFlush has the volume write all that was received, beside the worker. That it is asked
// is on the volume first.
func (p *provenance) beginFlush(before agent.Cached) error {
	if err := p.setCached(before.Asked()); err != nil {
		return err
	}
	f := &flushing{before: before, done: make(chan error, 1)}
	p.flush = f
	go func() { f.done <- p.flushVolume() }()
	return nil
}

// setCached keeps it on the volume, and tells.
func (p *provenance) setCached(c agent.Cached) error {
	if err := p.by.keep(func(r *volumeRecord) { r.setCached(c) }); err != nil {
		return err
	}
	p.by.retell()
	return nil
}

// becomeWhole notes that it has all that it ever acknowledged.
func (p *provenance) becomeWhole() error {
	if err := p.setCached(p.by.cached().Whole()); err != nil {
		return err
	}
	p.log.Info("this instance holds all transactions that it acknowledged")
	return nil
}

// flushRelayLogs puts on the disk what mysqld, which has ended, left in the page cache, and
// remembers that after it has been done, or that it failed: nobody is told a second time.
func (p *provenance) flushRelayLogs() error {
	c, here := p.by.cached(), p.here()
	if !c.Unflushed || !here.IsKnown() || c.In != here {
		return nil
	}
	if err := p.setCached(c.Asked()); err != nil {
		return err
	}
	if err := p.flushVolume(); err != nil {
		return errors.Join(err, p.setCached(c.Starts(agent.Start{Here: here, Failed: true})))
	}
	return p.setCached(c.Flushed())
}

// flushVolume waits until relay logs and all else on the volume are on the disk. Linux tells
// errors of a whole filesystem from 5.8 on, those of a file that is opened before, too.
func (p *provenance) flushVolume() error {
	found, err := filepath.Glob(filepath.Join(p.opt.Dirs.Data, "relay*"))
	for _, name := range append(found, p.opt.Dirs.Data) {
		err = errors.Join(err, syncFile(name))
	}
	if err = errors.Join(err, p.by.syncVolume()); err != nil {
		return fmt.Errorf("flushing relay logs: %w", err)
	}
	return nil
}

func syncFile(name string) error {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// receives remembers before anything is received where it is cached.
func (p *provenance) receives() error {
	c := p.by.cached()
	if c.Unflushed && c.Noted {
		return nil
	}
	return p.setCached(c.Receives(p.here()))
}

// What provenance asks of its manager, besides.

func (m *manager) cached() agent.Cached { return m.record.cached() }

func (m *manager) syncVolume() error { return m.record.syncVolume() }

// noteReceiving remembers before anything is received where it is cached; and how far the
// status was seen to get, for once it has lost what it acknowledged to the present primary, it
// must not become whole by what a former one had.
func (m *manager) noteReceiving() error {
	if err := m.rememberLatest(); err != nil {
		return err
	}
	return m.provenance.receives()
}

// startReceiving has a replica receive, once it is remembered where.
func (m *manager) startReceiving(ctx context.Context) error {
	if err := m.noteReceiving(); err != nil {
		return err
	}
	m.update(func(s *state) { s.status.receiveTry = time.Now() })
	return m.roles.StartReceiving(ctx)
}

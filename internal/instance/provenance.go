package instance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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

// here is this instance's residence; zero where it cannot be told.
func (m *manager) here() agent.Residence {
	r, err := thisKernel.residence(m.opt.Dirs.Meta, m.opt.PodUID, m.opt.Node)
	if err != nil {
		m.log.Warn("it cannot be told whether the page cache lives on", "error", err)
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
func (m *manager) noteStart(ctx context.Context, drops bool) error {
	before, start := m.memory.cached(), agent.Start{Here: m.here(), Drops: drops}
	if m.flush == nil {
		if !before.Unflushed {
			return nil
		}
		if start.Here != before.In || drops {
			return m.noteStarted(before, start)
		}
		if err := m.beginFlush(before); err != nil {
			return err
		}
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-m.flush.done:
		before, m.flush = m.flush.before, nil
		if start.Failed = err != nil; start.Failed {
			m.log.Warn("the volume reports that not all was written", "error", err)
		}
		return m.noteStarted(before, start)
	}
}

func (m *manager) noteStarted(before agent.Cached, start agent.Start) error {
	after := before.Starts(start)
	if after.MayLack && !before.MayLack {
		m.log.Warn("this instance may lack what it acknowledged: what it had received was not flushed, and may be gone",
			"was", before.In, "is", start.Here)
	}
	return m.setCached(after)
}

// beginFlush has the volume write all that was received, beside the worker. That it is asked
// is on the volume first.
func (m *manager) beginFlush(before agent.Cached) error {
	if err := m.setCached(before.Asked()); err != nil {
		return err
	}
	f := &flushing{before: before, done: make(chan error, 1)}
	m.flush = f
	go func() { f.done <- m.flushVolume() }()
	return nil
}

// setCached keeps it on the volume, and tells.
func (m *manager) setCached(c agent.Cached) error {
	if err := m.memory.change(func(r *remembered) { r.setCached(c) }); err != nil {
		return err
	}
	m.update(func(*state) {})
	return nil
}

// noteReceiving remembers before anything is received where it is cached; and how far the
// status was seen to get, for once it has lost what it acknowledged to the present primary, it
// must not become whole by what a former one had.
func (m *manager) noteReceiving() error {
	if err := m.rememberLatest(); err != nil {
		return err
	}
	if c := m.memory.cached(); !c.Unflushed {
		return m.setCached(c.Receives(m.here()))
	}
	return nil
}

func (m *manager) becomeWhole() error {
	if err := m.setCached(m.memory.cached().Whole()); err != nil {
		return err
	}
	m.log.Info("has all that it ever acknowledged")
	return nil
}

// flushRelayLogs puts on the disk what mysqld, which has ended, left in the page cache, and
// remembers that after it has been done, or that it failed: nobody is told a second time.
func (m *manager) flushRelayLogs() error {
	c, here := m.memory.cached(), m.here()
	if !c.Unflushed || !here.IsKnown() || c.In != here {
		return nil
	}
	if err := m.setCached(c.Asked()); err != nil {
		return err
	}
	if err := m.flushVolume(); err != nil {
		return errors.Join(err, m.setCached(c.Starts(agent.Start{Here: here, Failed: true})))
	}
	return m.setCached(c.Flushed())
}

// flushVolume waits until relay logs and all else on the volume are on the disk. Linux tells
// errors of a whole filesystem from 5.8 on, those of a file that is opened before, too.
func (m *manager) flushVolume() error {
	found, err := filepath.Glob(filepath.Join(m.opt.Dirs.Data, "relay*"))
	for _, name := range append(found, m.opt.Dirs.Data) {
		err = errors.Join(err, syncFile(name))
	}
	if err = errors.Join(err, m.memory.syncVolume()); err != nil {
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

// startReceiving has a replica receive, once it is remembered where.
func (m *manager) startReceiving(ctx context.Context) error {
	if err := m.noteReceiving(); err != nil {
		return err
	}
	m.update(func(s *state) { s.status.receiveTry = time.Now() })
	return m.roles.StartReceiving(ctx)
}

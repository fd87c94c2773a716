package instance

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/layout"
	"cnmsql.co/internal/version"
)

const (
	// answerTime is given to the answer that a binary is accepted, before it takes over.
	answerTime = 100 * time.Millisecond
	// provenAfter is how long a binary must have run until it counts as one that can.
	provenAfter = time.Minute
	// endsTolerated is after how many ends of the container it is not tried again.
	endsTolerated = 2
)

// newBinary is a binary that is to take the manager's place.
type newBinary struct{ digest, path string }

// replacer takes binaries that are to go on in the manager's place, tries them, and lets them. It
// keeps which binary the manager runs from, which is next, and which was refused.
type replacer struct {
	dirs Dirs
	log  *slog.Logger
	by   replaced

	// receiving is held while a binary is received.
	receiving sync.Mutex

	mu   sync.Mutex
	own  core.Binary
	next *newBinary // nil when there is none
	// refused is one that could not take over.
	refused *core.RefusedBinary
}

// replaced is what a replacer asks of its manager.
type replaced interface {
	// mayNotHandOver tells what the manager has in hand that it cannot hand over; "" when there is
	// nothing.
	mayNotHandOver() string
	// handOver makes this process the binary at path. It returns only when it fails, and then
	// nothing has changed.
	handOver(path string) error
	// tookOver: the manager goes on where another was, in the same process.
	tookOver() bool
	// retell has the report made again, and the worker look.
	retell()
}

func newReplacer(m *manager) *replacer {
	return &replacer{dirs: m.opt.Dirs, log: m.log, by: m}
}

// change changes what it keeps, and has that told.
func (p *replacer) change(f func()) {
	p.mu.Lock()
	f()
	p.mu.Unlock()
	p.by.retell()
}

// newBinary is the binary that is to take over; nil when there is none.
func (p *replacer) newBinary() *newBinary {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.next
}

// report is which binary the manager runs from, and which was refused.
func (p *replacer) report() (core.Binary, *core.RefusedBinary) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.own, p.refused
}

// newBinaryFile is where a binary is kept, in a directory of its own so that its process has
// the usual name, and triedFile what tells which one was given the process, until it has
// proven itself. Both last as long as the Pod.
func (d Dirs) newBinaryFile(id string) string {
	return filepath.Join(d.Run, "manager-"+id, filepath.Base(layout.Binary))
}
func (d Dirs) triedFile() string { return filepath.Join(d.Run, "manager.tried") }

// ReplaceManager takes a binary that is to go on in this manager's place, and mysqld with
// it. It returns when that is about to happen. Nothing happens before the binary is whole,
// runs, and understands what it will be left.
func (p *replacer) ReplaceManager(_ context.Context, digest string, binary io.Reader) error {
	if !p.receiving.TryLock() {
		return refusal(core.OrderBusy, "another binary is being received")
	}
	defer p.receiving.Unlock()
	own, refused := p.report()
	switch {
	case digest == own.Digest:
		return nil
	case p.newBinary() != nil:
		return refusal(core.OrderBusy, "another binary is about to take over")
	case refused != nil && refused.Digest == digest:
		return refusal(core.OrderBinaryRefused, "%s", refused.Why)
	}
	if why := p.by.mayNotHandOver(); why != "" {
		return refusal(core.OrderBusy, "%s", why)
	}
	path := p.dirs.newBinaryFile(strconv.FormatInt(time.Now().UnixNano(), 36))
	if err := p.receiveBinary(path, digest, binary); err != nil {
		_ = os.RemoveAll(filepath.Dir(path))
		return err
	}
	p.log.Info("the operator sent a binary that is to replace this manager", "digest", digest)
	time.AfterFunc(answerTime, func() {
		p.change(func() { p.next = &newBinary{digest, path} })
	})
	return nil
}

// receiveBinary writes the binary and tries whether it runs. Only what it says itself
// refuses it for good.
func (p *replacer) receiveBinary(path, digest string, binary io.Reader) error {
	got, err := keepBinary(path, binary)
	if err != nil {
		return fmt.Errorf("keeping the binary below %s: %w", p.dirs.Run, nameless(err))
	}
	if got != digest {
		return refusal(core.OrderBinaryDamaged, "what arrived has the digest %s, and %s was announced", got, digest)
	}
	format, err := run(context.Background(), 30*time.Second, []string{path}, "instance", "handover-format")
	var ended *exec.ExitError
	switch {
	case err != nil && !errors.Is(err, syscall.ENOEXEC) && !(errors.As(err, &ended) && ended.Exited()):
		return fmt.Errorf("trying whether the binary runs: %w: %s", nameless(err), format)
	case err != nil:
		return p.refuseBinary(digest, fmt.Sprintf("it does not run here: %v: %s", err, format))
	case format != strconv.Itoa(HandoverFormat):
		return p.refuseBinary(digest,
			fmt.Sprintf("it takes over from managers that speak format %s, and this one speaks %d",
				format, HandoverFormat))
	}
	return nil
}

// keepBinary writes the binary, and tells its digest.
func keepBinary(path string, binary io.Reader) (digest string, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(f, sum), binary)
	return hex.EncodeToString(sum.Sum(nil)), cmp.Or(err, f.Close())
}

// nameless is an error without the name of the file, which is another each time: what is told must
// not change with it.
func nameless(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

func (p *replacer) refuseBinary(digest, why string) error {
	p.change(func() { p.refused = &core.RefusedBinary{Digest: digest, Why: why} })
	return refusal(core.OrderBinaryRefused, "%s", why)
}

// giveWay lets the new binary take over if there is one. It returns when there is none, or when
// that cannot be: now, and then it is ordered again, or ever.
func (p *replacer) giveWay() {
	h := p.newBinary()
	if h == nil {
		return
	}
	p.change(func() { p.next = nil })
	before := p.readTried()
	now := tried{Digest: h.digest}
	if before.Digest == h.digest {
		now.Ends = before.Ends
	}
	err := p.rememberTried(now)
	if err == nil {
		p.log.Info("this manager starts another binary in its own place; mysqld runs on", "digest", h.digest)
		err = p.by.handOver(h.path)
	}
	err = errors.Join(err, p.rememberTried(before), os.RemoveAll(filepath.Dir(h.path)))
	p.log.Warn("this manager is not replaced", "error", err)
	if errors.Is(err, syscall.ENOEXEC) || errors.Is(err, syscall.EACCES) {
		_ = p.refuseBinary(h.digest, err.Error())
	}
}

// tried is what is remembered of the binary that took over, for as long as the Pod lasts.
type tried struct {
	Digest string `json:"digest"`
	// Proven: it has run for provenAfter.
	Proven bool `json:"proven"`
	// Ends of the container since it took over first.
	Ends int `json:"ends"`
}

// mayNot tells why it is not to take over again; "" when it may.
func (t tried) mayNot() string {
	switch {
	case t.Ends > 0 && !t.Proven:
		return "its container ended within " + provenAfter.String() + " after it took over"
	case t.Ends >= endsTolerated:
		return fmt.Sprintf("its container ended %d times since it took over first", t.Ends)
	}
	return ""
}

func (p *replacer) rememberTried(t tried) error {
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return writeDurably(p.dirs.triedFile(), text)
}

// readTried reads what is remembered of a binary that took over; zero if none has.
func (p *replacer) readTried() tried {
	var t tried
	text, err := os.ReadFile(p.dirs.triedFile())
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.log.Warn("cannot read which binary was tried", "error", err)
	}
	return t
}

// knowBinary finds out which binary this is, and what became of one that was tried before:
// a manager that did not take over in its process was started with a new container.
func (p *replacer) knowBinary(ctx context.Context) {
	p.tidyBinaries()
	digest, err := version.Digest()
	if err != nil {
		p.log.Warn("the manager does not know its own digest", "error", err)
		return
	}
	t := p.readTried()
	if !p.by.tookOver() && t.Digest != "" {
		t.Ends++
		if err := p.rememberTried(t); err != nil {
			p.log.Warn("cannot record that the container ended", "error", err)
		}
	}
	p.change(func() {
		p.own = core.Binary{Digest: digest, Platform: version.Platform}
		if why := t.mayNot(); why != "" && t.Digest != digest {
			p.refused = &core.RefusedBinary{Digest: t.Digest, Why: why}
		}
	})
	if t.Digest != digest || t.Proven {
		return
	}
	select {
	case <-ctx.Done():
		return
	case <-time.After(provenAfter):
	}
	t.Proven = true
	if err := p.rememberTried(t); err != nil {
		p.log.Warn("cannot record that this manager works", "error", err)
	}
}

// tidyBinaries removes the files of binaries that do not run.
func (p *replacer) tidyBinaries() {
	self, _ := os.Readlink("/proc/self/exe")
	files, _ := filepath.Glob(p.dirs.newBinaryFile("*"))
	for _, f := range files {
		if f != self {
			_ = os.RemoveAll(filepath.Dir(f))
		}
	}
}

// What a replacer asks of its manager, besides mayNotHandOver and handOver.

func (m *manager) tookOver() bool { return m.inherited }

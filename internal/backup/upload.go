package backup

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"cnmsql.co/internal/clone"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
)

// buffers are what parts are compressed into. There are so many that each upload has one,
// and the part that is being filled; who needs another waits. They are made when they are
// needed, and used again.
type buffers struct {
	free chan []byte
	size int64
}

// slack is what a part may have beyond its size: a record, of which donors send at most
// 1 MiB, and what compression adds to what it cannot compress. A buffer that is still too
// small grows.
const slack = 1<<20 + 128<<10

func newBuffers(n int, size int64) *buffers {
	b := &buffers{make(chan []byte, n), size}
	for range n {
		b.free <- nil
	}
	return b
}

// take waits until one is free.
func (b *buffers) take(ctx context.Context) ([]byte, error) {
	select {
	case buf := <-b.free:
		if buf == nil {
			buf = make([]byte, 0, b.size)
		}
		return buf[:0], nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (b *buffers) give(buf []byte) { b.free <- buf }

// uploader is a clone.Parts: it packs parts where they are cut, and uploads them by
// workers of its own. The first upload that fails ends its context.
type uploader struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	s       store.Store
	prefix  string
	token   string
	buffers *buffers
	zip     *zstd.Encoder // of the notes
	pack    packer        // of the parts: zip, unless they are not compressed
	key     seal.Key
	jobs    chan job
	workers sync.WaitGroup
	pending sync.WaitGroup
	report  *progress

	from  clone.Origin
	notes *notes
	open  *part
	names []string // of all parts that were begun

	mu    sync.Mutex
	parts []Part // of those that were closed; complete after Accept
}

// job is a part that was closed.
type job struct {
	number int
	name   string
	raw    int64
	body   []byte
}

// newUploader begins; end has to be called.
func newUploader(ctx context.Context, s store.Store, o Options, b *buffers, p *progress) (*uploader, error) {
	// Two: one block is searched for what repeats while the one before is encoded.
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(window), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, err
	}
	u := &uploader{s: s, prefix: prefix(o.Identity.Cluster, o.ID), token: newToken(), buffers: b, zip: zip, pack: zip,
		key: o.Key, jobs: make(chan job, o.Parallel+1), report: p, notes: newNotes()}
	if o.Uncompressed {
		u.pack = &stored{}
	}
	u.ctx, u.cancel = context.WithCancelCause(ctx)
	for range o.Parallel {
		u.workers.Go(u.work)
	}
	return u, nil
}

// window is how far back compression looks. A table with four indexes, 272 MiB, became 58 MiB
// with any window and level (57 MiB with the best that were tried), at 375 MiB/s with this
// window and 176 MiB/s with one of 8 MiB, on one core.
const window = 256 << 10

// end waits for the workers, which end soon if the context has ended.
func (u *uploader) end() {
	close(u.jobs)
	u.workers.Wait()
	if u.open != nil {
		u.buffers.give(u.open.body)
		u.open = nil
	}
	u.cancel(nil)
}

func (u *uploader) work() {
	for j := range u.jobs {
		err := u.upload(j)
		u.buffers.give(j.body)
		if err != nil {
			u.cancel(&storeError{fmt.Errorf("uploading part %d as %s: %w", j.number, u.prefix+j.name, err)})
		}
		u.pending.Done()
	}
}

// storeError is what ended an attempt because of the store: another would end so, too.
type storeError struct{ error }

func (e *storeError) Unwrap() error { return e.error }

func (u *uploader) upload(j job) error {
	if u.ctx.Err() != nil {
		return context.Cause(u.ctx)
	}
	sum := sha256.Sum256(j.body)
	err := retry(store.WithSHA256(u.ctx, sum), tries, func(ctx context.Context) error {
		return u.s.Put(ctx, u.prefix+j.name, j.body)
	})
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.parts[j.number].SHA256, u.parts[j.number].Stored = sum, int64(len(j.body))
	u.report.add(j.raw, 0)
	return nil
}

// Begin implements clone.Parts.
func (u *uploader) Begin(_ context.Context, from clone.Origin) error {
	u.from = from
	return nil
}

// Open implements clone.Parts. It waits for an upload if too many are under way.
func (u *uploader) Open(_ context.Context, number int) (clone.Part, error) {
	body, err := u.buffers.take(u.ctx)
	if err != nil {
		return nil, err
	}
	sealed := u.key.Recipient() != ""
	name := nameOf(u.token, number, sealed)
	u.names = append(u.names, name)
	u.open = &part{u: u, name: name, body: body}
	to := io.Writer(u.open)
	if sealed {
		if u.open.seal, err = u.key.Seal(u.open); err != nil {
			return nil, err
		}
		to = u.open.seal
	}
	u.pack.Reset(to)
	return writer{u}, nil
}

// Note implements clone.Parts.
func (u *uploader) Note(number int, r clone.Record) error { return u.notes.add(number, r) }

// Accept implements clone.Parts: all parts are in the store.
func (u *uploader) Accept(context.Context, clone.State) error {
	u.pending.Wait()
	return context.Cause(u.ctx)
}

// closedNotes are the notes as the manifest has them, once all parts are closed.
func (u *uploader) closedNotes() ([]byte, error) {
	if u.key.Recipient() == "" {
		return u.notes.compressed(u.zip), nil
	}
	return u.notes.sealed(u.zip, u.key, u.parts)
}

// part gets what a part's records are packed, and perhaps encrypted into.
type part struct {
	u    *uploader
	name string
	body []byte
	seal io.WriteCloser // between packer and body; nil if nothing is encrypted
}

func (p *part) Write(b []byte) (int, error) {
	p.body = append(p.body, b...)
	return len(b), nil
}

// writer is the clone.Part that is open.
type writer struct{ u *uploader }

func (w writer) Write(b []byte) (int, error) { return w.u.pack.Write(b) }

// Close gives the part to a worker.
func (w writer) Close(what clone.PartInfo) error {
	u := w.u
	if err := u.pack.Close(); err != nil {
		return err
	}
	if u.open.seal != nil {
		if err := u.open.seal.Close(); err != nil {
			return err
		}
	}
	u.mu.Lock()
	u.parts = append(u.parts, Part{Name: u.open.name, State: what.State.String(), Raw: what.Size,
		RawSHA256: what.SHA256,
		Records:   what.Records, Notes: u.notes.of[what.Number]})
	u.mu.Unlock()
	u.pending.Add(1)
	u.jobs <- job{what.Number, u.open.name, what.Size, u.open.body}
	u.open = nil
	return nil
}

// Bounds of sweeping up.
const (
	sweepFor    = 20 * time.Second
	sweepersMax = 8
)

// sweep removes the parts of an attempt that failed, as far as it can within a bounded
// time, also when the context has ended. What it cannot remove is BackupUnfinished.
func (u *uploader) sweep(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sweepFor)
	defer cancel()
	names := make(chan string, len(u.names))
	for _, name := range u.names {
		names <- name
	}
	close(names)
	var wg sync.WaitGroup
	for range min(sweepersMax, len(u.names)) {
		wg.Go(func() {
			for name := range names {
				if ctx.Err() != nil || u.s.Delete(ctx, u.prefix+name) != nil {
					return
				}
			}
		})
	}
	wg.Wait()
}

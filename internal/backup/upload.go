package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"cnmsql.co/internal/clone"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
)

// uploader is a clone.Parts. A part is gathered as its records come; workers then pack and
// upload it, each one part at a time, so that as many cores pack as there are workers. The
// first part that fails ends its context.
type uploader struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	s       store.Store
	prefix  string
	token   string
	raw     *buffers
	key     seal.Key
	hashed  bool // what is in a part has a hash of its own
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
	raw    []byte
}

// room is the memory of all attempts of a Take.
type room struct {
	raw    *buffers // of parts as their records come: one for each worker, and one that is being filled
	packed [][]byte // what each worker makes of them
}

func newRoom(o Options) room {
	r := room{newBuffers(o.Parallel+1, o.PartSize+slack), make([][]byte, o.Parallel)}
	for i := range r.packed {
		r.packed[i] = make([]byte, 0, o.PartSize+slack) // resident is only what is ever filled
	}
	return r
}

// newUploader begins; end has to be called.
func newUploader(ctx context.Context, s store.Store, o Options, m room, p *progress) (*uploader, error) {
	u := &uploader{s: s, prefix: prefix(o.Identity.Cluster, o.ID), token: newToken(), raw: m.raw,
		key: o.Key, hashed: !o.Uncompressed, jobs: make(chan job, o.Parallel+1), report: p, notes: newNotes()}
	u.ctx, u.cancel = context.WithCancelCause(ctx)
	for i := range m.packed {
		by, err := newPacker(o.Uncompressed)
		if err != nil {
			u.end()
			return nil, err
		}
		u.workers.Go(func() { u.work(by, &m.packed[i]) })
	}
	return u, nil
}

// end waits for the workers, which end soon if the context has ended.
func (u *uploader) end() {
	close(u.jobs)
	u.workers.Wait()
	if u.open != nil {
		u.raw.give(u.open.body)
		u.open = nil
	}
	u.cancel(nil)
}

// work packs and uploads parts until there are no more.
func (u *uploader) work(by packer, body *[]byte) {
	for j := range u.jobs {
		if err := u.store(j, by, body); err != nil {
			u.cancel(err)
		}
		u.pending.Done()
	}
}

// store packs a part into a worker's buffer, and uploads it.
func (u *uploader) store(j job, by packer, body *[]byte) error {
	var inside Hash
	err := context.Cause(u.ctx)
	if err == nil && u.hashed {
		inside = sha256.Sum256(j.raw)
	}
	if err == nil {
		err = u.pack(j, by, body)
	}
	u.raw.give(j.raw) // before the upload, which takes longest
	if err != nil {
		return err
	}
	if err := u.upload(j, *body, inside); err != nil {
		return &storeError{fmt.Errorf("uploading part %d as %s: %w", j.number, u.prefix+j.name, err)}
	}
	return nil
}

// pack makes of a part what is stored: one frame, encrypted if there is a key.
func (u *uploader) pack(j job, by packer, body *[]byte) error {
	out := bytes.NewBuffer((*body)[:0])
	defer func() { *body = out.Bytes() }() // it may have grown
	to := io.WriteCloser(nopCloser{out})
	if u.key.Recipient() != "" {
		sealed, err := u.key.Seal(out)
		if err != nil {
			return err
		}
		to = sealed
	}
	by.Reset(to)
	_, err := by.Write(j.raw)
	if err = errors.Join(err, by.Close(), to.Close()); err != nil {
		return fmt.Errorf("packing part %d: %w", j.number, err)
	}
	return nil
}

// storeError is what ended an attempt because of the store: another would end so, too.
type storeError struct{ error }

func (e *storeError) Unwrap() error { return e.error }

func (u *uploader) upload(j job, body []byte, inside Hash) error {
	if u.ctx.Err() != nil {
		return context.Cause(u.ctx)
	}
	sum := sha256.Sum256(body)
	err := retry(store.WithSHA256(u.ctx, sum), tries, func(ctx context.Context) error {
		return u.s.Put(ctx, u.prefix+j.name, body)
	})
	if err != nil {
		return err
	}
	u.mu.Lock()
	p := &u.parts[j.number]
	p.SHA256, p.RawSHA256, p.Stored = sum, inside, int64(len(body))
	raw := p.Raw
	u.mu.Unlock()
	u.report.add(raw, 0) // which may take a while
	return nil
}

// Begin implements clone.Parts.
func (u *uploader) Begin(_ context.Context, from clone.Origin) error {
	u.from = from
	return nil
}

// Open implements clone.Parts. It waits for a worker if too many parts are under way.
func (u *uploader) Open(_ context.Context, number int) (clone.Part, error) {
	body, err := u.raw.take(u.ctx)
	if err != nil {
		return nil, err
	}
	name := nameOf(u.token, number, u.key.Recipient() != "")
	u.names = append(u.names, name)
	u.open = &part{u: u, name: name, body: body}
	return u.open, nil
}

// Note implements clone.Parts.
func (u *uploader) Note(number int, r clone.Record) error { return u.notes.add(number, r) }

// Accept implements clone.Parts: all parts are in the store.
func (u *uploader) Accept(context.Context, clone.State) error {
	u.pending.Wait()
	return context.Cause(u.ctx)
}

// closedNotes are the notes as the manifest has them, once all parts are stored.
func (u *uploader) closedNotes() ([]byte, error) {
	zip, err := newCompressor()
	if err != nil {
		return nil, err
	}
	if u.key.Recipient() == "" {
		return u.notes.compressed(zip), nil
	}
	return u.notes.sealed(zip, u.key, u.parts)
}

// part gathers the records of the clone.Part that is open.
type part struct {
	u    *uploader
	name string
	body []byte
}

func (p *part) Write(b []byte) (int, error) {
	p.body = append(p.body, b...)
	return len(b), nil
}

// Close gives the part to a worker.
func (p *part) Close(what clone.PartInfo) error {
	u := p.u
	u.mu.Lock()
	u.parts = append(u.parts, Part{Name: p.name, State: what.State.String(), Raw: what.Size,
		Records: what.Records, Notes: u.notes.of[what.Number]})
	u.mu.Unlock()
	u.pending.Add(1)
	u.jobs <- job{what.Number, p.name, p.body}
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

package backup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"cnmsql.co/internal/clone"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
)

// Options are what Take has to know.
type Options struct {
	// Identity of the cluster; the archive becomes its own, see Claim.
	Identity Identity
	// ID is the backup's name; "" makes one that sorts by time.
	ID string
	// Instance and Epoch are what the manifest tells of the donor.
	Instance string
	Epoch    int64
	// Executed asks the donor for its @@gtid_executed: when an attempt begins, and at once
	// after the moment of which the data are. Its ctx ends in time, also if the donor hangs. It
	// is required.
	Executed func(ctx context.Context) (gtid.Set, error)
	// PartSize is how many bytes make a part, before compression, at most 1 GiB; 0 is 16 MiB.
	PartSize int64
	// Key encrypts parts and notes; the zero Key leaves them plain.
	Key seal.Key
	// Uncompressed stores parts as zstd frames that hold the bytes as they are. They have one
	// hash instead of two.
	Uncompressed bool
	// Parallel is how many parts are compressed and uploaded at a time; 0 is 4.
	Parallel int
	// Attempts is how often it is begun, if the connection to the donor breaks; 0 is 3. A donor that
	// serves another, or cannot be reached, is waited for besides, for DonorFrees at a time.
	Attempts int
	// Progress is told, by one goroutine at a time, a few times a second; another attempt
	// begins with nothing done. It may be nil.
	Progress func(Progress)
}

// source gives a snapshot to a consumer, as clone.Snapshot does.
type source func(ctx context.Context, to clone.Consumer) error

// Take takes a backup. When it returns nil, all of it is in the store. It needs no local
// disk, and memory as the package says.
//
// An upload that fails is tried again for half a minute, while the donor waits. When the
// connection to the donor breaks, or the donor is stopped, the parts are removed and all
// starts again, under other names; so do the parts of a Take that fails go, as far as they
// can be removed in 20 seconds. One case leaves them: when it is not known whether the
// manifest was written, they belong to a backup if it was. Errors are a Reason's, a
// clone.Reason's or the store's.
func Take(ctx context.Context, donor clone.Donor, s store.Store, o Options) (*Manifest, error) {
	return take(ctx, func(ctx context.Context, to clone.Consumer) error { return clone.Snapshot(ctx, donor, to) }, s, o)
}

func take(ctx context.Context, from source, s store.Store, o Options) (*Manifest, error) {
	o.ID, o.PartSize = cmp.Or(o.ID, NewID(time.Now())), cmp.Or(o.PartSize, 16<<20)
	o.Parallel, o.Attempts = cmp.Or(o.Parallel, 4), cmp.Or(o.Attempts, 3)
	if err := o.check(); err != nil {
		return nil, err
	}
	if err := Claim(ctx, s, o.Identity); err != nil {
		return nil, err
	}
	t := &taking{from: from, s: s, o: o, room: newRoom(o)}
	attempt := 1
	for {
		m, err := t.attempt(ctx)
		pause, busy := time.Duration(attempt)*donorNotices, t.waited.goesOn(ctx, err)
		switch {
		case busy && !t.taken:
			pause = donorNotices
		case err == nil || attempt >= o.Attempts || !busy && !again(ctx, err, attempt):
			return m, wrap(err, "taking backup %s of %s, attempt %d", o.ID, o.Identity.Cluster, attempt)
		default:
			attempt++
		}
		if err := wait(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// DonorFrees is more than a donor may serve somebody who is gone: it waits ten minutes for each of its
// writes to be taken, see clone.Donor. The Pod before this one may have been lost with its node.
const DonorFrees = 11 * time.Minute

// waiting is since when a donor has taken no attempt, without one in between that it took; zero if it
// has taken the last.
type waiting struct{ since time.Time }

// goesOn reports whether the donor serves another, or cannot be reached, and may do so no more soon.
func (w *waiting) goesOn(ctx context.Context, err error) bool {
	isBusy := errors.Is(err, clone.CloneRunning) || IsDial(err)
	if !isBusy || isOfStore(err) {
		w.since = time.Time{}
		return false
	}
	if w.since.IsZero() {
		w.since = time.Now()
	}
	return ctx.Err() == nil && time.Since(w.since) < DonorFrees
}

// IsDial reports whether a server could not be reached.
func IsDial(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) && network.Op == "dial"
}

// isOfStore reports whether an attempt failed because of the store, and not because of the donor.
func isOfStore(err error) bool {
	var ofStore *storeError
	return errors.As(err, &ofStore)
}

func (o Options) check() error {
	if err := checkNames(o.Identity.Cluster, o.ID); err != nil {
		return err
	}
	if o.Executed == nil || o.PartSize < 1 || o.PartSize > maxPart || o.Parallel < 1 || o.Attempts < 1 {
		return fmt.Errorf("options of a backup that make no sense: %+v", o)
	}
	return nil
}

// donorNotices is a little more than a donor takes to notice that a connection was lost.
// Until then it serves nobody else.
const donorNotices = 6 * time.Second

// again reports whether another attempt may succeed: the connection to the donor broke, or the donor
// ended it. Then it may also not answer for as long as it restarts. One that serves another, or could not
// be reached, was waited for.
func again(ctx context.Context, err error, attempt int) bool {
	var network *net.OpError
	if ctx.Err() != nil || isOfStore(err) || IsDial(err) {
		return false
	}
	if errors.As(err, &network) || errors.Is(err, clone.ConnectionLost) || errors.Is(err, clone.DonorSilent) ||
		errors.Is(err, clone.DonorStops) {
		return true
	}
	var asking *askError
	return attempt > 1 && errors.As(err, &asking)
}

// askError is what Executed returned.
type askError struct{ error }

func (e *askError) Unwrap() error { return e.error }

// unsureError is why it is not known whether the manifest was written.
type unsureError struct{ error }

func (e *unsureError) Unwrap() error { return e.error }

// IsUnsure reports whether there may be a backup of this name although Take failed: the manifest may
// have been written, or somebody else has written one. Read tells.
func IsUnsure(err error) bool {
	var unsure *unsureError
	return errors.As(err, &unsure) || errors.Is(err, BackupExists)
}

// taking is one Take.
type taking struct {
	from   source
	s      store.Store
	o      Options
	room   room
	taken  bool // the donor has taken this attempt
	waited waiting
}

// Bounds of asking the donor. One that hangs lets the kernel of its node take the connection, and
// nobody answers. The snapshot waits for all of it, and the donor for the snapshot: ten minutes,
// see clone.Donor.
const (
	askLimit  = 10 * time.Second
	asksLimit = time.Minute
)

// ask asks the donor what it has executed, again if it cannot answer for a moment: all of the data
// may be in the store by then. A later answer holds more, which is right as well: it is what the
// backup holds at most, and its moment is that of the answer. A restore to between the two takes
// an earlier backup. Before the snapshot each answer is right.
func (t *taking) ask(ctx context.Context) (set gtid.Set, err error) {
	all, cancel := context.WithTimeout(ctx, asksLimit)
	defer cancel()
	waited := retry(all, tries, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, askLimit)
		defer cancel()
		set, err = t.o.Executed(ctx)
		return err
	})
	if waited == nil {
		return set, nil
	}
	if ctx.Err() != nil {
		return set, context.Cause(ctx)
	}
	return set, &askError{fmt.Errorf("asking the donor what it has executed: %w", err)}
}

// attempt is one snapshot. If it fails, what it has uploaded goes.
func (t *taking) attempt(ctx context.Context) (*Manifest, error) {
	t.taken = false
	report := &progress{report: t.o.Progress}
	u, err := newUploader(ctx, t.s, t.o, t.room, report)
	if err != nil {
		return nil, err
	}
	m, err := t.snapshot(u)
	if why := context.Cause(u.ctx); err != nil && why != nil {
		err = why
	}
	if err != nil {
		u.cancel(err)
	}
	u.end()
	if err != nil {
		u.sweep(ctx)
		return nil, err
	}
	tried, err := t.publish(ctx, m)
	if err != nil {
		if !tried {
			u.sweep(ctx)
		}
		if tried {
			err = &unsureError{err}
		}
		return nil, &storeError{err}
	}
	report.end()
	return m, nil
}

// snapshot uploads all parts, and returns the manifest that names them.
func (t *taking) snapshot(u *uploader) (*Manifest, error) {
	m := &Manifest{Summary: Summary{ID: t.o.ID, Cluster: t.o.Identity, Method: methodClone, Instance: t.o.Instance,
		Epoch: t.o.Epoch, Begin: time.Now().UTC(), Recipient: t.o.Key.Recipient(), Uncompressed: t.o.Uncompressed}}
	m.Cluster.Format = format
	var err error
	if m.BeginGTID, err = t.ask(u.ctx); err != nil {
		return nil, err
	}
	cutter := clone.NewCutter(u, t.o.PartSize)
	if err := t.from(u.ctx, &watcher{Cutter: cutter, t: t, m: m, report: u.report}); err != nil {
		return nil, err
	}
	if err := cutter.Finish(u.ctx); err != nil {
		return nil, err
	}
	m.End, m.Server, m.Origin, m.Parts = time.Now().UTC(), u.from.Version(), u.from, u.parts
	if m.Notes, err = u.closedNotes(); err != nil {
		return nil, err
	}
	for _, p := range m.Parts {
		m.RawSize += p.Raw
		m.StoredSize += p.Stored
	}
	return m, m.check()
}

// watcher sees the records on their way to the Cutter.
type watcher struct {
	*clone.Cutter
	t      *taking
	m      *Manifest
	report *progress
	// passed: PageCopy was accepted, and so the moment of which the data are is over once
	// the donor sends again.
	passed bool
}

// Take implements clone.Consumer. The donor has taken the attempt: for what comes after that, it is waited
// for anew.
func (w *watcher) Take(ctx context.Context, r clone.Record) error {
	w.t.taken, w.t.waited = true, waiting{}
	if w.passed && w.m.Point.IsZero() {
		var err error
		if w.m.EndGTID, err = w.t.ask(ctx); err != nil {
			return err
		}
		w.m.Point = time.Now().UTC()
	}
	if s, ok := r.Descriptor.(clone.StateChange); ok && s.Start() {
		w.report.add(0, int64(min(s.Bytes, 1<<50)))
	}
	return w.Cutter.Take(ctx, r)
}

// Accept implements clone.Consumer.
func (w *watcher) Accept(ctx context.Context, s clone.State) error {
	if err := w.Cutter.Accept(ctx, s); err != nil {
		return err
	}
	w.passed = w.passed || s == clone.StatePageCopy
	return nil
}

// publish writes the manifest. tried is false if it certainly was not written.
func (t *taking) publish(ctx context.Context, m *Manifest) (tried bool, err error) {
	data, err := m.Encode()
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return false, err
	}
	key := ManifestKey(m.Cluster.Cluster, m.ID)
	err = retry(ctx, tries, func(ctx context.Context) error { return t.s.Create(ctx, key, data) })
	if !errors.Is(err, store.Exists) {
		return true, wrap(err, "writing %s", key)
	}
	// It may be ours: the answer to the first try was lost.
	found, err := read(ctx, t.s, key, maxManifest)
	if err == nil && !bytes.Equal(found, data) {
		return false, refuse(BackupExists, "writing %s", key)
	}
	return true, err
}

package store

import (
	"context"
	"io"

	"golang.org/x/time/rate"
)

// Limited gives a store that moves at most so many bytes per second, both ways together and
// all calls together; 0 and less is no limit.
func Limited(s Store, bytesPerSecond int64) Store {
	if bytesPerSecond <= 0 {
		return s
	}
	// What may go at once: a quarter of a second's, in pieces worth a system call.
	burst := min(max(bytesPerSecond/4, 4<<10), 1<<20)
	return &limited{Store: s, pace: rate.NewLimiter(rate.Limit(bytesPerSecond), int(burst))}
}

type limited struct {
	Store // lists and deletes
	pace  *rate.Limiter
}

// how an object is written.
type how struct {
	create bool          // unless there is one
	pace   *rate.Limiter // nil: as fast as it goes
}

// pacer is a store that can write slowly. Others are given the whole body, after the time
// that it may take.
type pacer interface {
	put(ctx context.Context, key string, body []byte, how how) error
}

// Put writes no faster than the limit. With a store that cannot pace a body it waits before it
// sends it.
func (l *limited) Put(ctx context.Context, key string, body []byte) error {
	if s, ok := l.Store.(pacer); ok {
		return s.put(ctx, key, body, how{pace: l.pace})
	}
	if err := wait(ctx, l.pace, len(body)); err != nil {
		return err
	}
	return l.Store.Put(ctx, key, body)
}

// Create creates no faster than the limit, as Put does.
func (l *limited) Create(ctx context.Context, key string, body []byte) error {
	if s, ok := l.Store.(pacer); ok {
		return s.put(ctx, key, body, how{create: true, pace: l.pace})
	}
	if err := wait(ctx, l.pace, len(body)); err != nil {
		return err
	}
	return l.Store.Create(ctx, key, body)
}

// Get gives a body that is read no faster than the limit.
func (l *limited) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	body, err := l.Store.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{&pacedReader{ctx: ctx, from: body, pace: l.pace}, body}, nil
}

// pacedReader reads no faster than pace, in pieces that pace allows at once.
type pacedReader struct {
	ctx  context.Context
	from io.Reader
	pace *rate.Limiter // nil: as fast as it goes
}

// Read waits behind what it has read, and ends with its context.
func (r *pacedReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if r.pace != nil && len(p) > r.pace.Burst() {
		p = p[:r.pace.Burst()]
	}
	n, err := r.from.Read(p)
	if waited := wait(r.ctx, r.pace, n); waited != nil {
		return n, waited
	}
	return n, err
}

// wait waits until so many bytes may be moved, and tells of each that may that it is.
func wait(ctx context.Context, pace *rate.Limiter, bytes int) error {
	for pace != nil && bytes > 0 {
		n := min(bytes, pace.Burst())
		if err := pace.WaitN(ctx, n); err != nil {
			return err
		}
		progress(ctx, n)
		bytes -= n
	}
	progress(ctx, bytes)
	return nil
}

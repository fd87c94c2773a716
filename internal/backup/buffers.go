package backup

import "context"

// buffers hold parts. Who needs one more than there are waits. They are made when they are
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

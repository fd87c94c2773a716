package store

import "context"

type progressKey struct{}

// WithProgress has moved called whenever something of an object, or of an answer, has come on its way:
// who waits for a store tells by it a slow line from one on which nothing moves. So it is, too, while
// a store is given time for what something between still holds of a body. It may be called by
// several goroutines, also after the call of the store has returned.
func WithProgress(ctx context.Context, moved func()) context.Context {
	return context.WithValue(ctx, progressKey{}, moved)
}

// progress tells that bytes have moved.
func progress(ctx context.Context, bytes int) {
	if moved, ok := ctx.Value(progressKey{}).(func()); ok && bytes > 0 {
		moved()
	}
}

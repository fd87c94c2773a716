package core

import "time"

// Fact is a value that is either known or unknown. The zero Fact is unknown.
// Unknown is a third value: it never stands for "down", "empty" or "no".
type Fact[T any] struct {
	value T
	known bool
	// notBefore and received bound the moment at which the value was true at
	// its origin. Both are of the observer's clock; no two machines' clocks
	// are ever compared.
	notBefore, received time.Time
}

// Known makes a known fact. notBefore is the latest moment of which the
// observer is sure that it lies before the value was read at its origin;
// received is when the observer got it.
func Known[T any](v T, notBefore, received time.Time) Fact[T] {
	return Fact[T]{value: v, known: true, notBefore: notBefore, received: received}
}

// Get returns the value, and whether it is known.
func (f Fact[T]) Get() (T, bool) { return f.value, f.known }

// Is reports whether the value is known to be so; IsNot, whether it is known not to be. Of what is
// unknown neither is true.
func (f Fact[T]) Is(so func(T) bool) bool { return f.known && so(f.value) }

// IsNot reports whether the value is known not to be so; see Is.
func (f Fact[T]) IsNot(so func(T) bool) bool { return f.known && !so(f.value) }

// Known tells whether the value is known.
func (f Fact[T]) Known() bool { return f.known }

// NotBefore is the earliest moment at which the value can have been read.
func (f Fact[T]) NotBefore() time.Time { return f.notBefore }

// Received is the latest moment at which the value can have been read.
func (f Fact[T]) Received() time.Time { return f.received }

// ReadAfter tells whether f was certainly read later than g. Both must be known.
func (f Fact[T]) ReadAfter(g Fact[T]) bool { return ReadAfter(f, g) }

// ReadAfter is that of two facts which are not alike.
func ReadAfter[T, U any](f Fact[T], g Fact[U]) bool {
	return f.known && g.known && !f.notBefore.Before(g.received)
}

package store

import (
	"strings"
	"time"
)

// listing goes on after the key that it came to.
type listing struct {
	before string // is no part of keys
	yield  func(Object, error) bool
	last   string // with before
	ended  bool   // nobody wants more
}

func newListing(path string, yield func(Object, error) bool) *listing {
	l := &listing{yield: yield}
	if path != "" {
		l.before = path + "/"
	}
	return l
}

// run lists on until all was told, or until it breaks without having told anything more.
// Then it gives the error.
func (l *listing) run(on func() error) error {
	for {
		after := l.last
		err := on()
		if err == nil || l.ended || after == l.last {
			return err
		}
	}
}

// found tells of an object by its name in the bucket; false when nobody wants more.
func (l *listing) found(name string, size int64, modified time.Time) bool {
	l.last = name
	key := strings.TrimPrefix(name, l.before)
	if wrongKey(key) != "" {
		return true // others' objects, as the "directories" that consoles make
	}
	l.ended = !l.yield(Object{Key: key, Size: size, Modified: modified}, nil)
	return !l.ended
}

// Package store keeps objects: what leaves a cluster for good lies there, and is written
// once. Store is all that is asked of an object store; S3 and what speaks it, Google Cloud
// Storage, Azure Blob Storage, and a directory, are four. The package knows names, bytes and
// what can go wrong with them. It must not know what the objects are: backups and archives are
// its callers' business.
package store

import (
	"context"
	"io"
	"iter"
	"time"
)

// Store keeps objects by key. A key is a relative path of plain names, as "a/b/c"; what
// lies before it (a bucket, a path within it, a directory) is the store's own. Methods may
// be called by several goroutines. They end soon after their context does, and not later
// than a store may be silent; they try again by themselves what a store may refuse for a
// moment. Errors that have a Reason match it with errors.Is.
type Store interface {
	// Put writes an object, in the place of one that has the key. When it returns nil the
	// object is there, whole. The caller leaves body alone until then.
	Put(ctx context.Context, key string, body []byte) error
	// Create is Put, unless there is an object that has the key: Exists then. Any other
	// error leaves open whether it was written, as with Put.
	Create(ctx context.Context, key string, body []byte) error
	// Get reads an object, from its start; NotFound when there is none. An object that ends
	// before it should, or a store that falls silent, is an error of Read.
	Get(ctx context.Context, key string) (io.ReadCloser, error)
	// List gives the objects whose keys begin with prefix, in the order of their keys. It
	// may not know yet of what was written or deleted a moment ago. An error ends it.
	List(ctx context.Context, prefix string) iter.Seq2[Object, error]
	// Delete removes an object; one that is not there is removed.
	Delete(ctx context.Context, key string) error
}

// Object is what a listing tells.
type Object struct {
	Key      string
	Size     int64
	Modified time.Time
}

// Reason is why a store cannot be used, with what to do about it. It is an error, so that
// errors.Is finds it.
type Reason struct {
	// Name as in conditions and events, for example StoreAccessDenied.
	Name string
	// Advice says what it means and what to do.
	Advice string
}

func (r *Reason) Error() string { return r.Name + ": " + r.Advice }

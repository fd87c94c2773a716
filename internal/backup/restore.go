package backup

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"cnmsql.co/internal/clone"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
)

// RestoreOptions are what Restore has to know.
type RestoreOptions struct {
	// Server is the version of the mysqld that the data are for, for example "9.7.4": of
	// the backup's series, and not older than the donor.
	Server string
	// Key opens a backup that is encrypted.
	Key seal.Key
	// Readers is how many parts are read and applied at a time; 0 is 4.
	Readers int
	// Progress is told, by one goroutine at a time, a few times a second. It may be nil.
	Progress func(Progress)
}

// Restore writes a backup into an empty directory, on which mysqld can be started when it
// returns nil; until then mysqld refuses to. Nothing is written if the server does not fit,
// the key does not, or a part is missing. A part is fetched into memory whole, and applied only if it is what
// was stored. A read that breaks is tried again for half a minute. After an error the
// directory is to be thrown away. The caller closes root.
func Restore(ctx context.Context, s store.Store, m *Manifest, root *os.Root, o RestoreOptions) (err error) {
	if err := m.Fits(o.Server); err != nil {
		return err
	}
	in, err := m.open(o.Key)
	if err != nil {
		return err
	}
	if err := Check(ctx, s, m); err != nil {
		return err
	}
	o.Readers = cmp.Or(o.Readers, 4)
	f := newFetcher(s, m, o)
	defer f.close()
	to := clone.NewApplier(root)
	defer func() {
		if closeErr := to.Close(); err == nil {
			err = closeErr
		}
	}()
	if err := clone.ReplayParts(ctx, m.Origin, f.parts(in), o.Readers, to); err != nil {
		return fmt.Errorf("restoring backup %s: %w", m.ID, err)
	}
	if err := to.Finish(ctx); err != nil {
		return fmt.Errorf("finishing the directory of backup %s: %w", m.ID, err)
	}
	f.report.end()
	return nil
}

// fetcher gives parts to the readers of clone.ReplayParts. Each reader has one buffer and
// one decoder at a time.
type fetcher struct {
	s       store.Store
	m       *Manifest
	key     seal.Key
	prefix  string
	buffers *buffers
	idle    chan *zstd.Decoder
	report  *progress
}

func newFetcher(s store.Store, m *Manifest, o RestoreOptions) *fetcher {
	largest := int64(0)
	for _, p := range m.Parts {
		largest = max(largest, p.Stored)
	}
	f := &fetcher{s: s, m: m, key: o.Key, prefix: prefix(m.Cluster.Cluster, m.ID),
		buffers: newBuffers(o.Readers, largest+1),
		idle:    make(chan *zstd.Decoder, o.Readers), report: &progress{report: o.Progress}}
	f.report.add(0, m.RawSize)
	return f
}

func (f *fetcher) close() {
	for len(f.idle) > 0 {
		(<-f.idle).Close()
	}
}

// parts are the manifest's as clone.ReplayParts takes them.
func (f *fetcher) parts(in *inside) []clone.StoredPart {
	var out []clone.StoredPart
	for i, p := range f.m.Parts {
		out = append(out, clone.StoredPart{Notes: in.notes[i], Unhashed: f.m.Uncompressed,
			PartInfo: clone.PartInfo{Number: i, State: stateOf(p.State), Size: p.Raw, Records: p.Records},
			SHA256:   in.hashes[i],
			Open:     func(ctx context.Context) (io.ReadCloser, error) { return f.open(ctx, p) }})
	}
	return out
}

// open fetches a part, and gives its records.
func (f *fetcher) open(ctx context.Context, p Part) (io.ReadCloser, error) {
	buf, err := f.buffers.take(ctx)
	if err != nil {
		return nil, err
	}
	out := &content{f: f, name: p.Name, raw: p.Raw, body: buf[:p.Stored+1]}
	if err = f.fetch(ctx, p, out.body); err == nil {
		err = out.unpack(out.body[:p.Stored])
	}
	if err != nil {
		f.buffers.give(buf)
		return nil, f.m.ofPart(p.Name, err)
	}
	return out, nil
}

// maxWindow is how far back a part may refer: much more than is written, and less than
// would hurt.
const maxWindow = 16 << 20

func (f *fetcher) decoder() (*zstd.Decoder, error) {
	select {
	case d := <-f.idle:
		return d, nil
	default:
		return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow))
	}
}

// content is what a part holds.
type content struct {
	f       *fetcher
	name    string
	records io.Reader
	zip     *zstd.Decoder
	body    []byte
	raw     int64
}

// unpack begins to decrypt and decompress an object.
func (c *content) unpack(object []byte) (err error) {
	from := io.Reader(bytes.NewReader(object))
	if to := c.f.m.Recipient; to != "" {
		if from, err = c.f.key.Open(from, to); err != nil {
			return refuse(PartDamaged, "decrypting %s: %v", c.name, err)
		}
	}
	if c.zip, err = c.f.decoder(); err == nil {
		err = c.zip.Reset(from)
	}
	if err != nil {
		return fmt.Errorf("unpacking %s: %w", c.name, err)
	}
	c.records = io.LimitReader(c.zip, c.raw+1)
	return nil
}

// Read gives records. The object is in memory: an error is of what is in it.
func (c *content) Read(b []byte) (int, error) {
	n, err := c.records.Read(b)
	if err != nil && err != io.EOF {
		err = c.f.m.ofPart(c.name, refuse(PartDamaged, "unpacking %s: %v", c.name, err))
	}
	return n, err
}

// Close implements io.Closer. No reader comes here before it has read all, or failed.
func (c *content) Close() error {
	c.f.buffers.give(c.body)
	select {
	case c.f.idle <- c.zip:
	default:
		c.zip.Close()
	}
	c.f.report.add(c.raw, 0)
	return nil
}

// damagedTries is how often a part is read before it is taken to be damaged. One that is damaged
// once may have become so on its way; one that is damaged twice lies so in the store.
const damagedTries = 2

// fetch reads a part into buf, which has one byte more than the part should have, and holds
// it against its hash.
func (f *fetcher) fetch(ctx context.Context, p Part, buf []byte) error {
	key, damaged := f.prefix+p.Name, 0
	err := retry(ctx, tries, func(ctx context.Context) error {
		n, err := get(ctx, f.s, key, buf)
		if err != nil || int64(n) == p.Stored && sha256.Sum256(buf[:n]) == p.SHA256 {
			return err
		}
		err = refuse(PartDamaged, "%s is not the %d bytes that were stored", key, p.Stored)
		if damaged++; damaged >= damagedTries {
			return &finalError{err}
		}
		return err
	})
	if errors.Is(err, store.NotFound) {
		return refuse(PartMissing, "%s (%v)", key, err)
	}
	return wrap(err, "fetching %s", key)
}

// get reads an object until its end, or until the buffer is full.
func get(ctx context.Context, s store.Store, key string, buf []byte) (n int, err error) {
	body, err := s.Get(ctx, key)
	if err != nil {
		return 0, err
	}
	defer func() { _ = body.Close() }()
	for n < len(buf) {
		m, err := body.Read(buf[n:])
		n += m
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

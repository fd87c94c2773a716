package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/store"
)

// A bundle holds the objects of consecutive parts one behind the other, as they were, and before
// them an index in a skippable frame: what reads zstd reads all of their logs.

const bundleSuffix = ".bundle.zst"

func bundleKey(prefix string, b facts.Bundle) string {
	return spanKey(prefix, b.Span(), bundleSuffix)
}

// readBundleKey tells which parts a bundle holds; false for any other object.
func readBundleKey(prefix, key string) (b facts.Bundle, ok bool) {
	s, ok := readSpanKey(prefix, key, bundleSuffix)
	b.Epoch, b.First, b.Last = s.Epoch, s.First, s.Last
	return b, ok
}

// spanKey names an object after the parts that it tells of.
func spanKey(prefix string, s facts.Span, suffix string) string {
	return fmt.Sprintf("%s%010d/%010d-%010d%s", prefix, s.Epoch, s.First, s.Last, suffix)
}

// readSpanKey tells which parts an object of this suffix tells of; false for any other object.
func readSpanKey(prefix, key, suffix string) (s facts.Span, ok bool) {
	rest, under := strings.CutPrefix(key, prefix)
	dir, name, nested := strings.Cut(rest, "/")
	numbers, is := strings.CutSuffix(name, suffix)
	first, last, both := strings.Cut(numbers, "-")
	var errs [3]error
	s.Epoch, errs[0] = strconv.ParseInt(dir, 10, 64)
	s.First, errs[1] = strconv.ParseInt(first, 10, 64)
	s.Last, errs[2] = strconv.ParseInt(last, 10, 64)
	return s, under && nested && is && both && errors.Join(errs[:]...) == nil && key == spanKey(prefix, s, suffix)
}

// bundleOf makes the object of a bundle.
func (c *compressor) bundleOf(parts []entry, objects [][]byte) ([]byte, error) {
	i := index{Format: facts.Format, Epoch: parts[0].Epoch, Parts: parts}
	head, err := c.text(i)
	if err != nil {
		return nil, err
	}
	size := frameHeader + len(head)
	for _, object := range objects {
		size += len(object)
	}
	out := binary.LittleEndian.AppendUint32(make([]byte, 0, size), frameMagic)
	out = append(binary.LittleEndian.AppendUint32(out, uint32(len(head))), head...)
	for _, object := range objects {
		out = append(out, object...)
	}
	return out, nil
}

// readBundleHead reads the index of a bundle, and leaves r behind it.
func readBundleHead(r io.Reader, b facts.Bundle) (*index, error) {
	var head [frameHeader]byte
	_, err := io.ReadFull(r, head[:])
	if why := brokenOff(err); why != nil {
		return nil, why
	}
	size := binary.LittleEndian.Uint32(head[4:])
	if err != nil || binary.LittleEndian.Uint32(head[:]) != frameMagic || size > maxFacts {
		return nil, damagedBundle(b, "it does not begin with its index")
	}
	text, err := io.ReadAll(io.LimitReader(r, int64(size)))
	if err != nil {
		return nil, err
	}
	i, err := decodeIndex(bytes.NewReader(text), facts.Key{Epoch: b.Epoch, Sequence: b.Last})
	if err != nil {
		return nil, err
	}
	if i == nil || len(i.Parts) != int(b.Last-b.First+1) {
		return nil, damagedBundle(b, "its index is not what was written")
	}
	for n, e := range i.Parts {
		if e.Sequence != b.First+int64(n) || e.Stored < 0 || e.Stored > facts.BundleBytes {
			return nil, damagedBundle(b, "its index does not tell of its parts")
		}
	}
	return i, nil
}

// brokenOff is an error of reading that is not the end of the object.
func brokenOff(err error) error {
	var ofStore *store.Reason
	if errors.As(err, &ofStore) || err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return nil
}

func damagedBundle(b facts.Bundle, why string) error {
	return refuse(PartDamaged, "the bundle of the parts %d to %d of epoch %d: %s", b.First, b.Last, b.Epoch, why)
}

// getBundleHead reads no more of a bundle than its index.
func getBundleHead(ctx context.Context, s store.Store, prefix string, b facts.Bundle) (*index, error) {
	body, err := s.Get(ctx, bundleKey(prefix, b))
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }() // the rest is not wanted
	return readBundleHead(body, b)
}

// opened is a bundle in memory.
type opened struct {
	facts.Bundle
	parts   []entry
	objects [][]byte
	// damaged is why it cannot be read; nil if it can.
	damaged error
}

// openBundle reads a bundle.
func openBundle(ctx context.Context, s store.Store, prefix string, b facts.Bundle) (*opened, error) {
	body, err := s.Get(ctx, bundleKey(prefix, b))
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	i, err := readBundleHead(body, b)
	if err != nil {
		return nil, err
	}
	o := &opened{Bundle: b, parts: i.Parts}
	for _, e := range i.Parts {
		object := make([]byte, e.Stored)
		_, err := io.ReadFull(body, object)
		if why := brokenOff(err); why != nil {
			return nil, why
		}
		if err != nil {
			return nil, damagedBundle(b, "it ends too early")
		}
		o.objects = append(o.objects, object)
	}
	return o, nil
}

// object of a part, as it was before it was bundled.
func (o *opened) object(key facts.Key) ([]byte, error) {
	n := key.Sequence - o.First
	if digest(o.objects[n]) != o.parts[n].Object {
		return nil, refuse(PartDamaged, "part %d of epoch %d is not what was bundled", key.Sequence, key.Epoch)
	}
	return o.objects[n], nil
}

// isWhole looks at each part.
func (o *opened) isWhole() error {
	for _, e := range o.parts {
		if _, err := o.object(e.Key()); err != nil {
			return err
		}
	}
	return nil
}

// checkObject looks whether the object of a part is what was written, and tells what it is.
func checkObject(object []byte, key facts.Key) (entry, error) {
	in := bytes.NewReader(object)
	part, err := readFacts(in, key)
	if err != nil {
		return entry{}, err
	}
	e := entry{Part: part, Stored: int64(len(object)), Object: digest(object)}
	if part.Recipient != "" {
		if digest(object[len(object)-in.Len():]) != part.SHA256 {
			err = refuse(PartDamaged, "part %d of epoch %d has another content than was written", key.Sequence,
				key.Epoch)
		}
		return e, err
	}
	r, err := newReader(part, io.NopCloser(in), in, sha256.New())
	if err != nil {
		return e, err
	}
	_, err = io.Copy(io.Discard, r)
	return e, errors.Join(err, r.Close())
}

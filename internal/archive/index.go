package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unique"

	"github.com/klauspost/compress/zstd"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/store"
)

const (
	// indexed is how many parts an index tells of.
	indexed = 256
	// indexTimeout bounds the one attempt to store an index: parts wait for it.
	indexTimeout = 10 * time.Second
	indexSuffix  = ".index.zst"
)

// index repeats what the parts of a branch tell of themselves, of a block of consecutive ones,
// so that one object is read instead of the beginning of each. Nothing is lost with it: what it
// does not have, or says of a part that the listing has with another size, is read from the part.
type index struct {
	Format int     `json:"format"`
	Epoch  int64   `json:"epoch"`
	Parts  []entry `json:"parts"`
}

// entry is a part, and how many bytes its object has.
type entry struct {
	facts.Part
	Stored int64 `json:"stored"`
	// Object is the SHA-256 of a bundled object, in hexadecimal digits.
	Object string `json:"object,omitempty"`
}

// indexKey is that of an index by the last part that it tells of.
func indexKey(prefix string, last facts.Key) string {
	return fmt.Sprintf("%s%010d/%010d%s", prefix, last.Epoch, last.Sequence, indexSuffix)
}

// readIndexKey tells which part is the last of an index; false for any other object.
func readIndexKey(prefix, key string) (last facts.Key, ok bool) {
	rest, under := strings.CutPrefix(key, prefix)
	dir, name, nested := strings.Cut(rest, "/")
	number, is := strings.CutSuffix(name, indexSuffix)
	epoch, errEpoch := strconv.ParseInt(dir, 10, 64)
	sequence, errSequence := strconv.ParseInt(number, 10, 64)
	last = facts.Key{Epoch: epoch, Sequence: sequence}
	return last, under && nested && is && errors.Join(errEpoch, errSequence) == nil && key == indexKey(prefix, last)
}

// text makes an object of JSON: a frame of zstd with it and its digest, as a part has it.
func (c *compressor) text(of any) ([]byte, error) {
	text, err := json.Marshal(of)
	if err != nil {
		return nil, err
	}
	text = append(text, '\n')
	return c.zstd.EncodeAll(append(text, digest(text)...), nil), nil
}

// decodeText reads such an object; false if it is none, or not what was written. An error is that the
// store breaks off.
func decodeText(r io.Reader, into any) (bool, error) {
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return false, err
	}
	defer z.Close()
	text, err := io.ReadAll(io.LimitReader(z, maxFacts))
	var ofStore *store.Reason
	if errors.As(err, &ofStore) {
		return false, err
	}
	end := max(len(text)-hex.EncodedLen(sha256.Size), 0)
	return err == nil && digest(text[:end]) == string(text[end:]) && json.Unmarshal(text[:end], into) == nil, nil
}

// decodeIndex reads an index; nil if it is none, or not what was written.
func decodeIndex(r io.Reader, last facts.Key) (*index, error) {
	var i index
	if is, err := decodeText(r, &i); !is {
		return nil, err
	}
	if n := len(i.Parts); i.Format != facts.Format || n == 0 || i.Parts[n-1].Key() != last {
		return nil, nil
	}
	for _, e := range i.Parts {
		if e.Epoch != last.Epoch || checkFormat(e.Part) != nil {
			return nil, nil
		}
	}
	for n := range i.Parts {
		share(&i.Parts[n].Part)
	}
	return &i, nil
}

// parts are those that the index tells of.
func (i *index) parts() []facts.Part {
	all := make([]facts.Part, len(i.Parts))
	for n, e := range i.Parts {
		all[n] = e.Part
	}
	return all
}

// share has parts that tell the same keep it once: an archive has very many of them.
func share(p *facts.Part) {
	for _, text := range []*string{&p.Cluster, &p.ServerUUID, &p.File, &p.Recipient} {
		*text = unique.Make(*text).Value()
	}
}

// getIndex reads one; nil if there is none that says anything.
func getIndex(ctx context.Context, s store.Store, prefix string, last facts.Key) (*index, error) {
	body, err := s.Get(ctx, indexKey(prefix, last))
	if errors.Is(err, store.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	i, err := decodeIndex(body, last)
	return i, errors.Join(err, body.Close())
}

// note keeps what an index is made of, and stores one when a block of parts is complete, of all
// of which this process knows. One that cannot be stored is missing.
func (s *Shipper) note(ctx context.Context, part facts.Part, stored int64) {
	if (part.Sequence-1)%s.c.IndexEvery == 0 {
		s.block = nil
	}
	s.block = append(s.block, entry{Part: part, Stored: stored})
	if part.Sequence%s.c.IndexEvery != 0 || int64(len(s.block)) != s.c.IndexEvery {
		return
	}
	i := index{Format: facts.Format, Epoch: part.Epoch, Parts: s.block}
	s.block = nil
	object, err := s.compress.text(i)
	if err != nil || s.may(ctx) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, indexTimeout)
	defer cancel()
	_ = s.c.Store.Create(ctx, indexKey(s.c.Prefix, part.Key()), object)
}

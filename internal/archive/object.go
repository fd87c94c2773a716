package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/store"
)

const (
	// format of branches and parts; what is of another is refused.
	format      = 1
	branchName  = "branch.json"
	partSuffix  = ".binlog.zst"
	frameMagic  = 0x184D2A50 // of a skippable frame
	frameHeader = 8
	maxFacts    = 64 << 20
)

func branchKey(prefix string, epoch int64) string {
	return fmt.Sprintf("%s%010d/%s", prefix, epoch, branchName)
}

func partKey(prefix string, k facts.Key) string {
	return fmt.Sprintf("%s%010d/%010d%s", prefix, k.Epoch, k.Sequence, partSuffix)
}

// readKey tells what an object is: a branch (sequence 0), a part, or neither.
func readKey(prefix, key string) (k facts.Key, ok bool) {
	rest, under := strings.CutPrefix(key, prefix)
	dir, name, nested := strings.Cut(rest, "/")
	epoch, err := strconv.ParseInt(dir, 10, 64)
	if !under || !nested || err != nil {
		return k, false
	}
	k.Epoch = epoch
	if number, isPart := strings.CutSuffix(name, partSuffix); isPart {
		k.Sequence, err = strconv.ParseInt(number, 10, 64)
		return k, err == nil && key == partKey(prefix, k)
	}
	return k, key == branchKey(prefix, epoch)
}

// compressor makes parts; it is not for several goroutines.
type compressor struct{ zstd *zstd.Encoder }

func newCompressor() (*compressor, error) {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	return &compressor{e}, err
}

// digest of what is written, in hexadecimal digits.
func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// object completes the facts of a part and makes its object.
func (c *compressor) object(p *facts.Part, raw []byte) ([]byte, error) {
	p.Size, p.SHA256 = int64(len(raw)), digest(raw)
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	text = append(text, '\n')
	text = append(text, digest(text)...)
	out := binary.LittleEndian.AppendUint32(make([]byte, 0, len(text)+len(raw)/3), frameMagic)
	out = append(binary.LittleEndian.AppendUint32(out, uint32(len(text))), text...)
	return c.zstd.EncodeAll(raw, out), nil
}

// readFacts reads the beginning of a part.
func readFacts(r io.Reader, key facts.Key) (p facts.Part, err error) {
	var head [frameHeader]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return p, err
	}
	size := binary.LittleEndian.Uint32(head[4:])
	if binary.LittleEndian.Uint32(head[:]) != frameMagic || size > maxFacts {
		return p, refuse(PartDamaged, "part %d of epoch %d does not begin with its facts", key.Sequence, key.Epoch)
	}
	text, err := io.ReadAll(io.LimitReader(r, int64(size)))
	if err != nil {
		return p, err
	}
	end := max(len(text)-hex.EncodedLen(sha256.Size), 0)
	if len(text) < int(size) || digest(text[:end]) != string(text[end:]) {
		return p, refuse(PartDamaged, "the facts of part %d of epoch %d are not what was written", key.Sequence, key.Epoch)
	}
	if err := json.Unmarshal(text[:end], &p); err != nil {
		return p, because(PartDamaged, fmt.Errorf("the facts of part %d of epoch %d: %w", key.Sequence, key.Epoch, err))
	}
	if p.Key() != key || p.Format != format {
		return p, refuse(PartDamaged, "the object of part %d of epoch %d tells of part %d of epoch %d, in format %d",
			key.Sequence, key.Epoch, p.Sequence, p.Epoch, p.Format)
	}
	return p, nil
}

// getFacts reads no more of a part than its facts.
func getFacts(ctx context.Context, s store.Store, prefix string, key facts.Key) (p facts.Part, err error) {
	body, err := s.Get(ctx, partKey(prefix, key))
	if err != nil {
		return p, err
	}
	defer func() { _ = body.Close() }() // the rest is not wanted
	return readFacts(body, key)
}

// reader reads a part decompressed, and refuses it at its end if it is not what was written.
type reader struct {
	part facts.Part
	body io.ReadCloser
	zstd *zstd.Decoder
	sum  hash.Hash
	size int64
}

// openPart begins to read a part of which the facts are known.
func openPart(ctx context.Context, s store.Store, prefix string, part facts.Part) (io.ReadCloser, error) {
	body, err := s.Get(ctx, partKey(prefix, part.Key()))
	if err != nil {
		return nil, err
	}
	if _, err := readFacts(body, part.Key()); err != nil {
		return nil, errors.Join(err, body.Close())
	}
	z, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(32<<20))
	if err != nil {
		return nil, errors.Join(err, body.Close())
	}
	return &reader{part: part, body: body, zstd: z, sum: sha256.New()}, nil
}

func (r *reader) Read(to []byte) (int, error) {
	n, err := r.zstd.Read(to)
	r.sum.Write(to[:n])
	r.size += int64(n)
	switch {
	case err == nil:
		return n, nil
	case !errors.Is(err, io.EOF):
		return n, because(PartDamaged, fmt.Errorf("decompressing part %d of epoch %d: %w", r.part.Sequence, r.part.Epoch, err))
	case r.size != r.part.Size || hex.EncodeToString(r.sum.Sum(nil)) != r.part.SHA256:
		return n, refuse(PartDamaged, "part %d of epoch %d has another content than was written", r.part.Sequence, r.part.Epoch)
	}
	return n, io.EOF
}

func (r *reader) Close() error {
	r.zstd.Close()
	return r.body.Close()
}

// getBranch reads what a promotion began.
func getBranch(ctx context.Context, s store.Store, prefix string, epoch int64) (b facts.Branch, err error) {
	body, err := s.Get(ctx, branchKey(prefix, epoch))
	if err != nil {
		return b, err
	}
	text, err := io.ReadAll(io.LimitReader(body, maxFacts))
	if err = errors.Join(err, body.Close()); err != nil {
		return b, err
	}
	if err := json.Unmarshal(bytes.TrimSpace(text), &b); err != nil || b.Epoch != epoch || b.Format != format {
		return b, errors.Join(refuse(PartDamaged, "the branch of epoch %d", epoch), err)
	}
	return b, nil
}

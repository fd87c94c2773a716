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
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
)

const (
	// formatSealed is that of parts that are encrypted; facts.Format is that of others, and of
	// branches. What is of another is refused, as the second is by what knows only the first.
	formatSealed = 2

	branchName  = "branch.json"
	markName    = "complete.json"
	partSuffix  = ".binlog.zst"
	frameMagic  = 0x184D2A50 // of a skippable frame
	frameHeader = 8
	maxFacts    = 64 << 20
)

func branchKey(prefix string, epoch int64) string {
	return fmt.Sprintf("%s%010d/%s", prefix, epoch, branchName)
}

func markKey(prefix string, epoch int64) string {
	return fmt.Sprintf("%s%010d/%s", prefix, epoch, markName)
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

// object completes the facts of a part and makes its object. With a key, what stands behind
// the facts is encrypted.
func (c *compressor) object(p *facts.Part, raw []byte, key seal.Key) ([]byte, error) {
	p.Format, p.Size, p.Recipient = facts.Format, int64(len(raw)), key.Recipient()
	if p.Recipient == "" {
		p.SHA256 = digest(raw)
		out, err := beginning(p, len(raw)/3)
		if err != nil {
			return nil, err
		}
		return c.zstd.EncodeAll(raw, out), nil
	}
	content, err := c.sealed(raw, key)
	if err != nil {
		return nil, err
	}
	p.Format, p.SHA256 = formatSealed, digest(content)
	out, err := beginning(p, len(content))
	return append(out, content...), err
}

// beginning is the frame that holds the facts, with room for so many bytes behind it.
func beginning(p *facts.Part, room int) ([]byte, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	text = append(text, '\n')
	text = append(text, digest(text)...)
	out := binary.LittleEndian.AppendUint32(make([]byte, 0, frameHeader+len(text)+room), frameMagic)
	return append(binary.LittleEndian.AppendUint32(out, uint32(len(text))), text...), nil
}

func (c *compressor) sealed(raw []byte, key seal.Key) ([]byte, error) {
	small := c.zstd.EncodeAll(raw, make([]byte, 0, len(raw)/3))
	out := bytes.NewBuffer(make([]byte, 0, len(small)+len(small)>>11+1024))
	to, err := key.Seal(out)
	if err != nil {
		return nil, err
	}
	_, err = to.Write(small)
	err = errors.Join(err, to.Close())
	return out.Bytes(), err
}

// readFacts reads the beginning of a part.
func readFacts(r io.Reader, key facts.Key) (p facts.Part, err error) {
	var head [frameHeader]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return p, cutOff(err, key)
	}
	size := binary.LittleEndian.Uint32(head[4:])
	if binary.LittleEndian.Uint32(head[:]) != frameMagic || size > maxFacts {
		return p, refuse(PartDamaged, "part %d of epoch %d does not begin with its facts", key.Sequence, key.Epoch)
	}
	text, err := io.ReadAll(io.LimitReader(r, int64(size)))
	if err != nil {
		return p, cutOff(err, key)
	}
	end := max(len(text)-hex.EncodedLen(sha256.Size), 0)
	if len(text) < int(size) || digest(text[:end]) != string(text[end:]) {
		return p, refuse(PartDamaged, "the facts of part %d of epoch %d are not what was written",
			key.Sequence, key.Epoch)
	}
	if err := json.Unmarshal(text[:end], &p); err != nil {
		return p, because(PartDamaged, fmt.Errorf("the facts of part %d of epoch %d: %w", key.Sequence, key.Epoch, err))
	}
	if p.Key() != key {
		return p, refuse(PartDamaged, "the object of part %d of epoch %d tells of part %d of epoch %d",
			key.Sequence, key.Epoch, p.Sequence, p.Epoch)
	}
	share(&p)
	return p, checkFormat(p)
}

// cutOff names the end of an object that comes too early. What a store breaks off has its name.
func cutOff(err error, key facts.Key) error {
	if why := brokenOff(err); why != nil {
		return why
	}
	return refuse(PartDamaged, "part %d of epoch %d ends before its facts do", key.Sequence, key.Epoch)
}

func checkFormat(p facts.Part) error {
	if p.Format != facts.Format && p.Format != formatSealed {
		return refuse(FormatUnknown, "part %d of epoch %d has format %d", p.Sequence, p.Epoch, p.Format)
	}
	sealed := p.Recipient != ""
	if sealed != (p.Format == formatSealed) || sealed && seal.CheckRecipient(p.Recipient) != nil {
		return refuse(PartDamaged, "part %d of epoch %d has format %d and is encrypted to %.100q",
			p.Sequence, p.Epoch, p.Format, p.Recipient)
	}
	return nil
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
	body io.Closer
	zstd *zstd.Decoder
	sum  hash.Hash // as the facts have it
	size int64
}

// openObject begins to read the object of a part of which the facts are known.
func openObject(body io.ReadCloser, part facts.Part, key seal.Key) (r io.ReadCloser, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, body.Close())
		}
	}()
	if _, err := readFacts(body, part.Key()); err != nil {
		return nil, err
	}
	from, sum := io.Reader(body), sha256.New()
	if part.Recipient != "" {
		if from, err = key.Open(io.TeeReader(body, sum), part.Recipient); err != nil {
			return nil, damage("decrypting", part, err)
		}
	}
	return newReader(part, body, from, sum)
}

// newReader decompresses from. What it reads is added to sum, unless the part is encrypted.
func newReader(part facts.Part, body io.Closer, from io.Reader, sum hash.Hash) (*reader, error) {
	z, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(32<<20))
	if err != nil {
		return nil, err
	}
	return &reader{part: part, body: body, zstd: z, sum: sum}, nil
}

// damage names an error of reading a part, unless the key or the store is why, or nobody wants it any more.
func damage(what string, p facts.Part, err error) error {
	var ofKey *seal.Reason
	var ofStore *store.Reason
	named := fmt.Errorf("%s part %d of epoch %d: %w", what, p.Sequence, p.Epoch, err)
	isGivenUp := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if errors.As(err, &ofKey) || errors.As(err, &ofStore) || isGivenUp {
		return named
	}
	return because(PartDamaged, named)
}

// Read gives what the part holds, decompressed. At the end it returns io.EOF only when the part
// has the size and, unless it is encrypted, the hash that were written: PartDamaged otherwise.
func (r *reader) Read(to []byte) (int, error) {
	n, err := r.zstd.Read(to)
	if r.part.Recipient == "" {
		r.sum.Write(to[:n])
	}
	r.size += int64(n)
	switch {
	case err == nil:
		return n, nil
	case !errors.Is(err, io.EOF):
		return n, damage("decompressing", r.part, err)
	case r.size != r.part.Size || hex.EncodeToString(r.sum.Sum(nil)) != r.part.SHA256:
		return n, refuse(PartDamaged, "part %d of epoch %d has another content than was written",
			r.part.Sequence, r.part.Epoch)
	}
	return n, io.EOF
}

// Close closes the object, read to its end or not.
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
	if err := json.Unmarshal(bytes.TrimSpace(text), &b); err != nil {
		return b, because(PartDamaged, fmt.Errorf("the branch of epoch %d: %w", epoch, err))
	}
	if b.Format != facts.Format {
		return b, refuse(FormatUnknown, "the branch of epoch %d has format %d", epoch, b.Format)
	}
	if b.Epoch != epoch {
		return b, refuse(PartDamaged, "the object of the branch of epoch %d tells of epoch %d", epoch, b.Epoch)
	}
	return b, nil
}

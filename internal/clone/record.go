package clone

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// maxData is the longest block of data that is accepted. Donors send at most 1 MiB.
const maxData = 4 << 20

// Record is what a snapshot is made of: a descriptor, and data if it is a Block.
type Record struct {
	Descriptor Descriptor
	Data       []byte
}

// IsData reports whether the record has data. Nearly all of a snapshot is such records. The others
// are so small that a manifest can hold them.
func (r Record) IsData() bool {
	_, ok := r.Descriptor.(Block)
	return ok
}

// Consumer takes a snapshot. Its methods are called by one goroutine, one after the
// other; an error ends the snapshot. They have to end soon after their context does.
type Consumer interface {
	// Begin comes first, once.
	Begin(ctx context.Context, from Origin) error
	// Take gets the next record. Its data are valid until Take returns. That Take is
	// slow slows the donor down, and nothing is buffered in between.
	Take(ctx context.Context, r Record) error
	// Accept returns when all records of a state that has ended are safe. The donor
	// forgets then how to send them again.
	Accept(ctx context.Context, s State) error
}

// recordHeader is the length of what stands before a record: the lengths of descriptor
// and data, 4 bytes each, big-endian.
const recordHeader = 8

// appendHeader adds all of a record but its data.
func (r Record) appendHeader(b []byte) []byte {
	at := len(b)
	b = r.Descriptor.Append(u32s(b, 0, uint32(len(r.Data))))
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-recordHeader))
	return b
}

// Writer writes records one behind the other. It buffers nothing.
type Writer struct {
	w   io.Writer
	buf []byte
}

// NewWriter makes a Writer.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write writes one record. A record that is not as it announces itself is Malformed, and nothing
// of it is written.
func (w *Writer) Write(r Record) error {
	if err := r.check(); err != nil {
		return err
	}
	w.buf = r.appendHeader(w.buf[:0])
	if _, err := w.w.Write(w.buf); err != nil {
		return err
	}
	if len(r.Data) == 0 {
		return nil
	}
	_, err := w.w.Write(r.Data)
	return err
}

// check refuses a record whose data are not as long as it announces. Only a block announces any.
func (r Record) check() error {
	d, _ := r.Descriptor.(Block)
	if uint64(len(r.Data)) != uint64(d.Length) {
		return refuse(Malformed, "%d bytes of data, and %d were announced", len(r.Data), d.Length)
	}
	return nil
}

// Reader reads what a Writer has written.
type Reader struct {
	r    *bufio.Reader
	head []byte
	data []byte
}

// NewReader makes a Reader, which reads ahead a little.
func NewReader(r io.Reader) *Reader { return &Reader{r: bufio.NewReaderSize(r, 1<<16)} }

// Next returns the next record, which is valid until the next call; io.EOF at the end.
// An end within a record is Incomplete.
func (r *Reader) Next() (Record, error) {
	var lengths [recordHeader]byte
	if _, err := io.ReadFull(r.r, lengths[:]); err == io.EOF {
		return Record{}, io.EOF
	} else if err != nil {
		return Record{}, short(err)
	}
	descriptor, data := binary.BigEndian.Uint32(lengths[:]), binary.BigEndian.Uint32(lengths[4:])
	if descriptor > maxDescriptor || data > maxData {
		return Record{}, refuse(Malformed, "a record of %d and %d bytes", descriptor, data)
	}
	var err error
	if r.head, err = r.fill(r.head, int(descriptor)); err != nil {
		return Record{}, err
	}
	var out Record
	if out.Descriptor, err = ParseDescriptor(r.head); err != nil {
		return Record{}, err
	}
	if d, _ := out.Descriptor.(Block); d.Length != data {
		return Record{}, refuse(Malformed, "a record has %d bytes of data, and its descriptor says %d", data, d.Length)
	}
	r.data, err = r.fill(r.data, int(data))
	out.Data = r.data
	return out, err
}

// fill reads n bytes into a buffer that it makes larger if need be.
func (r *Reader) fill(buf []byte, n int) ([]byte, error) {
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	_, err := io.ReadFull(r.r, buf[:n])
	return buf[:n], short(err)
}

// short gives an end in the wrong place its name.
func short(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return refuse(Incomplete, "an end within a record")
	}
	return err
}

// Replay gives a consumer what a Writer has written, as a donor would. It returns at the
// end of the stream, which must be the end of the snapshot.
func Replay(ctx context.Context, from Origin, stream io.Reader, to Consumer) error {
	if err := from.check(); err != nil {
		return err
	}
	if err := to.Begin(ctx, from); err != nil {
		return err
	}
	in, at := NewReader(stream), newSequence()
	for n := 0; ; n++ {
		r, err := in.Next()
		if err == io.EOF {
			return at.finished()
		}
		if err == nil {
			err = at.next(r)
		}
		if err == nil {
			err = hand(ctx, to, r)
		}
		if err != nil {
			return fmt.Errorf("record %d of the stream: %w", n, err)
		}
	}
}

// hand gives a record to a consumer. At the end of a state, the consumer has accepted
// all of it.
func hand(ctx context.Context, to Consumer, r Record) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if err := to.Take(ctx, r); err != nil {
		return err
	}
	if s, ok := r.Descriptor.(StateChange); ok && !s.Start() {
		return to.Accept(ctx, s.State)
	}
	return nil
}

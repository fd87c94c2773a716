package binlog

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Check reads a transaction that Next has found, and looks whether its events are whole and right, and together as
// long as it says: ErrDamaged if not. An event may be a gigabyte, and none is held in memory.
func (l *Log) Check(ctx context.Context, t Transaction) error {
	in := bufio.NewReaderSize(io.NewSectionReader(l.file, t.Offset, t.Size), 1<<20)
	for at, end := t.Offset, t.Offset+t.Size; at < end; {
		if err := ctx.Err(); err != nil {
			return err
		}
		length, err := checkNext(in, l.checksum, end-at)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return ErrTorn
		}
		if err != nil {
			return fmt.Errorf("the event at %d of the transaction at %d: %w", at, t.Offset, err)
		}
		at += length
	}
	return nil
}

// checkNext reads an event, of which there are at most so many bytes.
func checkNext(in io.Reader, checksum int, left int64) (length int64, err error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(in, header[:min(headerSize, left)]); err != nil {
		return 0, err
	}
	length = int64(binary.LittleEndian.Uint32(header[offsetLength:]))
	if length < headerSize+int64(checksum) || length > min(left, maxEvent) {
		return 0, fmt.Errorf("%w: it has %d bytes, and %d are left", ErrDamaged, length, left)
	}
	sum := crc32.NewIEEE()
	_, _ = sum.Write(header[:])
	if _, err := io.CopyN(sum, in, length-headerSize-int64(checksum)); err != nil || checksum == 0 {
		return length, err
	}
	var want [checksumSize]byte
	if _, err := io.ReadFull(in, want[:]); err != nil {
		return 0, err
	}
	if sum.Sum32() != binary.LittleEndian.Uint32(want[:]) {
		return 0, fmt.Errorf("%w: its checksum is wrong", ErrDamaged)
	}
	return length, nil
}

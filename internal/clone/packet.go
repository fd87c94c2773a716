package clone

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"
)

const (
	// frameMax is the length of a frame that another one continues.
	frameMax    = 1<<24 - 1
	frameHeader = 4

	// maxPacket is a block with its response code.
	maxPacket = maxData + 1
)

// conn is a connection on the level of packets. It is used by one goroutine.
type conn struct {
	net.Conn
	// raw is below TLS.
	raw net.Conn
	// seq is the number of the next frame, in either direction.
	seq byte
	// limit is the length of the longest packet that is accepted.
	limit int
	// silence is how long the other side may take to send or take a packet.
	silence time.Duration
	buf     []byte
	// interrupted: nothing is read or written any more.
	interrupted atomic.Bool
}

func newConn(c net.Conn, silence time.Duration) *conn {
	return &conn{Conn: c, raw: c, limit: maxPacket, silence: silence}
}

// interrupt ends what the connection waits for, from another goroutine. It stays open.
func (c *conn) interrupt() {
	c.interrupted.Store(true)
	_ = c.raw.SetDeadline(time.Now())
}

// revive lets an interrupted connection be used once more.
func (c *conn) revive(silence time.Duration) {
	c.interrupted.Store(false)
	c.silence = silence
}

// due sets a deadline for the next packet. An interruption is not missed: it comes before
// the question, or its own deadline behind this one.
func (c *conn) due(set func(time.Time) error) error {
	if err := set(time.Now().Add(c.silence)); err != nil {
		return err
	}
	if c.interrupted.Load() {
		return os.ErrDeadlineExceeded
	}
	return nil
}

// read returns the next packet's payload, which is valid until the next call. The
// buffer grows with what arrives, never with what a header promises beyond the limit.
func (c *conn) read() ([]byte, error) {
	if err := c.due(c.SetReadDeadline); err != nil {
		return nil, lost(err, "reading")
	}
	for n := 0; ; {
		var header [frameHeader]byte
		if _, err := io.ReadFull(c, header[:]); err != nil {
			return nil, lost(err, "reading")
		}
		length := int(header[0]) | int(header[1])<<8 | int(header[2])<<16
		if header[3] != c.seq {
			return nil, refuse(Malformed, "a packet has number %d, not %d", header[3], c.seq)
		}
		c.seq++
		if n+length > c.limit {
			return nil, refuse(Malformed, "a packet has more than %d bytes", c.limit)
		}
		c.grow(n, n+length)
		if _, err := io.ReadFull(c, c.buf[n:n+length]); err != nil {
			return nil, lost(err, "reading")
		}
		n += length
		if length < frameMax {
			return c.buf[:n], nil
		}
	}
}

// grow makes room for size bytes and keeps the first used ones.
func (c *conn) grow(used, size int) {
	if size > cap(c.buf) {
		c.buf = append(make([]byte, 0, size), c.buf[:used]...)
	}
	c.buf = c.buf[:cap(c.buf)]
}

// write sends one packet.
func (c *conn) write(payload []byte) error {
	if err := c.due(c.SetWriteDeadline); err != nil {
		return lost(err, "writing")
	}
	for {
		n := min(len(payload), frameMax)
		frame := binary.LittleEndian.AppendUint32(make([]byte, 0, frameHeader+n), uint32(n)|uint32(c.seq)<<24)
		if _, err := c.Write(append(frame, payload[:n]...)); err != nil {
			return lost(err, "writing")
		}
		c.seq++
		if payload = payload[n:]; n < frameMax {
			return nil
		}
	}
}

// command begins a new exchange with a packet.
func (c *conn) command(payload []byte) error {
	c.seq = 0
	return c.write(payload)
}

// lost says how a connection was lost; the cause can be told from the error.
func lost(err error, doing string) error {
	why := ConnectionLost
	if errors.Is(err, os.ErrDeadlineExceeded) {
		why = DonorSilent
	}
	return fmt.Errorf("%s: %w: %w", doing, err, why)
}

// ended puts the end of a context in place of what it made of a connection.
func ended(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

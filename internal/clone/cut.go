package clone

import (
	"context"
	"fmt"
)

// Parts is where a Cutter puts a snapshot.
type Parts interface {
	// Begin comes first, once.
	Begin(ctx context.Context, from Origin) error
	// Open begins part number, the first has 0; the one before is closed.
	Open(ctx context.Context, number int) (Part, error)
	// Note tells of a record without data, and which part holds it. All of them
	// together are small.
	Note(number int, r Record) error
	// Accept returns when all parts that were closed are safe.
	Accept(ctx context.Context, s State) error
}

// Part takes one part's bytes, and at its end what it was. A part of a snapshot that
// failed is not closed.
type Part interface {
	Write(p []byte) (int, error)
	Close(what PartInfo) error
}

// PartInfo is what a manifest has to know of a part.
type PartInfo struct {
	Number int
	// State of its records. Those of Init are in the first part of FileCopy. Within
	// a state, blocks of data may be applied in any order.
	State State
	// Size is of the records as they are, before any compression.
	Size    int64
	Records int
}

// Cutter is a Consumer that writes a snapshot into parts. A part holds whole records of
// one state; all parts, one behind the other, are what Replay reads. It buffers nothing.
type Cutter struct {
	parts Parts
	limit int64
	out   Part
	w     *Writer
	info  PartInfo
}

// NewCutter makes a Cutter that ends a part once it has limit bytes: it has less than
// limit and one record.
func NewCutter(parts Parts, limit int64) *Cutter {
	return &Cutter{parts: parts, limit: limit}
}

// Begin implements Consumer.
func (c *Cutter) Begin(ctx context.Context, from Origin) error { return c.parts.Begin(ctx, from) }

// Take implements Consumer.
func (c *Cutter) Take(ctx context.Context, r Record) error {
	if c.out == nil {
		out, err := c.parts.Open(ctx, c.info.Number)
		if err != nil {
			return fmt.Errorf("opening part %d: %w", c.info.Number, err)
		}
		c.out, c.w = out, NewWriter(c)
	}
	if err := c.w.Write(r); err != nil {
		return fmt.Errorf("writing part %d: %w", c.info.Number, err)
	}
	c.info.Records++
	switch d := r.Descriptor.(type) {
	case Block:
		c.info.State = d.State
		if c.info.Size >= c.limit {
			return c.end()
		}
		return nil
	case StateChange:
		c.info.State = d.State
	case File:
		c.info.State = d.State
	}
	return c.parts.Note(c.info.Number, r)
}

// Write implements io.Writer: what the records consist of goes into the part.
func (c *Cutter) Write(p []byte) (int, error) {
	n, err := c.out.Write(p)
	c.info.Size += int64(n)
	return n, err
}

// end closes the part that is open.
func (c *Cutter) end() error {
	if c.out == nil {
		return nil
	}
	out, info := c.out, c.info
	c.out, c.info = nil, PartInfo{Number: info.Number + 1}
	if err := out.Close(info); err != nil {
		return fmt.Errorf("closing part %d: %w", info.Number, err)
	}
	return nil
}

// Accept implements Consumer. Init has so few bytes that it gets no part of its own.
func (c *Cutter) Accept(ctx context.Context, s State) error {
	if s == StateInit {
		return nil
	}
	if err := c.end(); err != nil {
		return err
	}
	return c.parts.Accept(ctx, s)
}

// Finish closes the last part, after Snapshot has returned without an error.
func (c *Cutter) Finish(ctx context.Context) error {
	if err := c.end(); err != nil {
		return err
	}
	return c.parts.Accept(ctx, StateDone)
}

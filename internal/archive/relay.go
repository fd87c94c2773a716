package archive

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"cnmsql.co/internal/binlog"
	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
)

// relayLogs are where a server keeps the relay logs of the replay's channel.
type relayLogs struct {
	base, index string
	// take is the statement by which the server takes them, from the one that is named by ?.
	take string
	// relative is set if the server names them relative to its data directory.
	relative bool
}

// file is the path of one of them; number is from 1.
func (r relayLogs) file(number int) string { return fmt.Sprintf("%s.%06d", r.base, number) }

// staged is where one is written before its turn. The server does not look for such names.
func (r relayLogs) staged(number int) string { return fmt.Sprintf("%s-staged.%d", r.base, number) }

// clear removes what a replay left that was broken off.
func (r relayLogs) clear(patterns ...string) error {
	for _, pattern := range patterns {
		paths, err := filepath.Glob(r.base + pattern)
		if err != nil {
			return err
		}
		for _, path := range paths {
			if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// place gives staged files their names, and names them in the index.
func (r relayLogs) place(staged []string) error {
	if err := r.clear(".[0-9]*", ".index"); err != nil {
		return err
	}
	var index strings.Builder
	for i, path := range staged {
		name := r.file(i + 1)
		if err := os.Rename(path, name); err != nil {
			return err
		}
		if r.relative {
			name = "./" + filepath.Base(name)
		}
		index.WriteString(name + "\n")
	}
	return os.WriteFile(r.index, []byte(index.String()), 0o640)
}

// batch are relay logs that lie on the volume at the same time.
type batch struct {
	files        []string
	steps        []facts.Step
	set          gtid.Set
	size         int64
	transactions int64
	// statements are the transactions that may make, change or drop tables: all but those that
	// consist of rows.
	statements gtid.Set
}

// batchSteps are the most parts of a batch, which have all to be known.
const batchSteps = 16 << 10

// written is a relay log that was made of a part.
type written struct {
	path string
	size int64
	// statements are its transactions that hold one.
	statements gtid.Set
}

// prepare writes the plan's steps as staged relay logs, a batch at a time, and hands each
// over.
func (r *Replay) prepare(ctx context.Context, logs relayLogs, steps []facts.Step, give chan<- batch) error {
	var b batch
	all := func(ctx context.Context) iter.Seq2[facts.Step, error] { return r.steps(ctx, steps) }
	ahead := newAhead(ctx, all, sizeOf,
		func(ctx context.Context, i int, step facts.Step) (w written, err error) {
			w.path = logs.staged(i)
			if w.size, w.statements, err = r.write(ctx, w.path, step); err != nil {
				err = ofPieces(step.Pieces, fmt.Errorf("writing part %d of epoch %d as a relay log: %w",
					step.Pieces[0].Sequence, step.Pieces[0].Epoch, err))
			}
			return w, err
		})
	defer ahead.end()
	for {
		step, w, more, err := ahead.next()
		if err != nil {
			return err
		}
		if more {
			b.add(step, w)
		}
		if more && b.size < r.BatchBytes && len(b.steps) < batchSteps {
			continue
		}
		if len(b.steps) > 0 {
			select {
			case give <- b:
				b = batch{}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if !more {
			return nil
		}
	}
}

func (b *batch) add(step facts.Step, w written) {
	b.files, b.steps, b.size = append(b.files, w.path), append(b.steps, step), b.size+w.size
	b.set, b.transactions = b.set.Union(step.Take), b.transactions+int64(step.Take.Count())
	b.statements = b.statements.Union(w.statements)
}

// write makes a relay log of a part: its transactions that are to be taken, and tells which of them
// hold statements.
func (r *Replay) write(ctx context.Context, path string, step facts.Step) (size int64, statements gtid.Set, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o640)
	if err != nil {
		return 0, statements, err
	}
	out := &relayWriter{Writer: bufio.NewWriterSize(f, 1<<20), step: step, serverID: r.ServerID}
	err = r.eachEvent(ctx, step.Pieces, out.event)
	err = errors.Join(err, out.Flush(), f.Close())
	if err == nil && !out.written.Equal(step.Take) {
		err = refuse(PartDamaged, "%s are not in it", step.Take.Subtract(out.written).Abbreviate(4))
	}
	return out.size, out.statements, err
}

type relayWriter struct {
	*bufio.Writer
	step     facts.Step
	serverID uint32
	format   []byte // of the events that are written; nil before the first
	begins   bool   // this is the first event of a step
	taking   bool
	size     int64
	written  gtid.Set
	// id is the transaction that is being written, statements are those with one.
	id, statements gtid.Set
}

func (w *relayWriter) event(s *binlog.Stream, e binlog.Event) error {
	if format := s.Format(); w.format == nil {
		w.format = format
		// Behind the format stand the GTIDs of before. That another file of the source begins
		// has to be said: the server's logical clock starts again with it.
		w.bytes(format, e.Header, e.Body, s.Rotation(w.step.Pieces[0].File))
	} else if w.begins && !bytes.Equal(format, w.format) {
		w.format = format
		w.bytes(format[binlog.MagicSize:]) // a reader goes by it from here on, as by that of another binlog_checksum
	}
	w.begins = false
	if e.Begins != nil {
		if w.taking = w.step.Take.Contains(e.Begins.ID); w.taking {
			w.id, w.written = e.Begins.ID, w.written.Union(e.Begins.ID)
		}
	}
	if !w.taking || !e.IsOfTransaction() {
		return nil
	}
	if e.ServerID() == w.serverID {
		return refuse(ServerIDTaken, "the server number %d", w.serverID)
	}
	if s.IsStatement(e) {
		w.statements = w.statements.Union(w.id)
	}
	w.bytes(e.Header, e.Body)
	return nil
}

// bytes are written; an error of the writer comes again when it is flushed.
func (w *relayWriter) bytes(all ...[]byte) {
	for _, b := range all {
		n, _ := w.Write(b)
		w.size += int64(n)
	}
}

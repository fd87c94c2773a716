package archive

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	facts "cnmsql.co/internal/core/archive"
)

// WriteLost writes what a failover lost of an epoch as one binary log, for mysqlbinlog: the
// transactions byte for byte, in their order, without those that survived. The format stands
// again where it changes. A part that lacks them is PartDamaged.
func (p Place) WriteLost(ctx context.Context, lost facts.LostBranch, to io.Writer) error {
	out := &relayWriter{Writer: bufio.NewWriter(to)}
	for step, err := range p.steps(ctx, lost.Steps) {
		if err != nil {
			return errors.Join(err, out.Flush())
		}
		out.step, out.begins = step, true
		err = p.eachEvent(ctx, step.Pieces, out.event)
		if err == nil && !out.written.Contains(step.Take) {
			err = refuse(PartDamaged, "%s are not in it", step.Take.Subtract(out.written).Abbreviate(4))
		}
		if err != nil {
			last := step.Pieces[len(step.Pieces)-1]
			return errors.Join(fmt.Errorf("reading part %d of epoch %d: %w", last.Sequence,
				last.Epoch, err), out.Flush())
		}
	}
	return out.Flush()
}

// Dated is what a failover lost of an epoch with the times of its own commits: before, they are
// those of the parts in which it stands. It reads these parts.
func (p Place) Dated(ctx context.Context, lost facts.LostBranch) (facts.LostBranch, error) {
	var first, last time.Time
	for step, err := range p.steps(ctx, lost.Steps) {
		var list []facts.Transaction
		if err == nil {
			list, err = p.transactions(ctx, step.Pieces)
		}
		if err != nil {
			return lost, fmt.Errorf("reading what epoch %d has lost: %w", lost.Epoch, err)
		}
		for _, t := range list {
			if !step.Take.Contains(t.ID) {
				continue
			}
			if first.IsZero() || t.Committed.Before(first) {
				first = t.Committed
			}
			if t.Committed.After(last) {
				last = t.Committed
			}
		}
	}
	lost.First, lost.Last = first, last
	return lost, nil
}

package archive

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	facts "cnmsql.co/internal/core/archive"
)

// WriteLost writes what a failover lost of an epoch as one binary log, for mysqlbinlog: the
// transactions byte for byte, in their order, without those that survived. A part that lacks
// them is PartDamaged.
func (p Place) WriteLost(ctx context.Context, lost facts.LostBranch, to io.Writer) error {
	out := &relayWriter{Writer: bufio.NewWriter(to)}
	for _, step := range lost.Steps {
		out.step = step
		err := p.eachEvent(ctx, step.Pieces, out.event)
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

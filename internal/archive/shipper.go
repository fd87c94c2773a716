package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"cnmsql.co/internal/binlog"
	"cnmsql.co/internal/core"
	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
)

// Config is what a Shipper needs. All but the last group has to be given.
type Config struct {
	Store store.Store
	// Prefix of all keys, with a slash at its end: CLUSTER/log/.
	Prefix string
	// Cluster is the UID of the cluster.
	Cluster string
	// Epoch of the promotion that Instance, whose server has ServerUUID, holds.
	Epoch                int64
	Instance, ServerUUID string
	// Group is the name of the group in which it is primary; "" in none.
	Group string
	// Start is what the server had executed when it was promoted. Once the branch is written
	// its own record counts. Before that a later set, as of a manager that was restarted,
	// loses nothing either: it only lets an archive that has no branch yet begin later.
	Start gtid.Set
	// Recoveries are those of the group.
	Recoveries []core.GroupRecovery
	// Index is the path of the file that names the binary logs.
	Index string
	// Executed tells what the server has executed. Nothing else is shipped.
	Executed func(context.Context) (gtid.Set, error)
	// May returns nil while the instance holds the promotion of Epoch. It is asked often,
	// and right before each write; it should answer from memory. Whoever loses the promotion
	// ends Run's context as well: that breaks off a write, too.
	May func(context.Context) error
	// TargetRPO is how old the oldest transaction may become that is not archived.
	TargetRPO time.Duration

	// Key is asked before each part what to encrypt it with, so that a key that was replaced
	// counts from the next part on. The zero Key leaves it plain; an error ends Run. nil is
	// never to encrypt.
	Key func() (seal.Key, error)
	// IndexEvery is how many parts an index tells of; 0 is 256. A branch keeps to one number.
	IndexEvery int64
	// MaxBytes of a part before compression, and about a quarter of the memory used; 0 is
	// 16 MiB.
	MaxBytes int64
	// Marks has the store told, while nothing is written, that the archive is complete.
	Marks bool
	// PutTimeout is for how long nothing may move in an attempt to store a part, see
	// store.WithProgress; 0 is 2 minutes.
	PutTimeout time.Duration
	// Since is since when it is not known what the archive lacks; zero is when Run begins.
	Since time.Time
}

const (
	defaultMaxBytes   = 16 << 20
	defaultPutTimeout = 2 * time.Minute
	// longestSleep is between two questions whether this instance may go on.
	longestSleep = time.Second
)

// Shipper archives the binary logs of one epoch, see Run. Status and Archived may be called
// at any time.
type Shipper struct {
	c        Config
	compress *compressor
	source   source
	sequence int64 // of the next part
	executed gtid.Set
	unasked  bool // the server did not answer when it was asked last
	pending  *pending
	block    []entry       // of the parts for which there is no index yet
	took     time.Duration // by the last upload
	marked   time.Time     // when it was last said that the archive is complete
	asked    time.Time     // when it was last looked whether the epoch has ended
	mu       sync.Mutex
	status   Status
	// markFailed is why the last mark could not be written; nil if it could.
	markFailed error
}

// NewShipper makes a Shipper that has not begun. What is 0 of MaxBytes, IndexEvery and PutTimeout
// gets its default. An error means that nothing can be compressed.
func NewShipper(c Config) (*Shipper, error) {
	if c.MaxBytes <= 0 {
		c.MaxBytes = defaultMaxBytes
	}
	if c.IndexEvery <= 0 {
		c.IndexEvery = indexed
	}
	if c.PutTimeout <= 0 {
		c.PutTimeout = defaultPutTimeout
	}
	compress, err := newCompressor()
	if err != nil {
		return nil, err
	}
	return &Shipper{c: c, compress: compress, source: source{index: c.Index}}, nil
}

// Run ships until its context ends (nil), May does not allow it (PromotionNotHeld), or it
// cannot go on; then the caller may run it again after a while: it goes on behind what the
// store has. A store that fails is no end; it is tried again, with pauses of up to half a
// minute.
func (s *Shipper) Run(ctx context.Context) error {
	defer s.source.close()
	err := s.begin(ctx)
	for err == nil {
		var idle bool
		if idle, err = s.step(ctx); err == nil && idle {
			err = sleep(ctx, s.pace().Poll())
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	s.failed(err)
	return err
}

func (s *Shipper) pace() facts.Pace { return facts.Pace{RPO: s.c.TargetRPO, MaxBytes: s.c.MaxBytes} }

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// may asks for the permission to go on.
func (s *Shipper) may(ctx context.Context) error {
	if err := s.c.May(ctx); err != nil {
		return errors.Join(ctx.Err(), because(PromotionNotHeld, err))
	}
	return ctx.Err()
}

// step reads on, and ships what is due. idle: there is nothing to do now.
func (s *Shipper) step(ctx context.Context) (idle bool, err error) {
	if err := s.may(ctx); err != nil {
		return false, err
	}
	big, atEnd, err := s.collect(ctx)
	s.observe()
	switch {
	case err != nil:
		return false, s.unreadable(err)
	case s.pending != nil && (big != nil || s.pace().IsDue(s.pending.Pending, s.took, time.Now())):
		return false, s.ship(ctx)
	case big != nil:
		return false, s.shipPieces(ctx, *big)
	case !atEnd:
		return true, nil
	}
	return s.turn(ctx)
}

// turn goes to the next log, when what was taken from this one is shipped.
func (s *Shipper) turn(ctx context.Context) (idle bool, err error) {
	path, again, err := s.source.follower()
	switch {
	case err != nil:
		return true, s.passing(err)
	case path == "" && !again:
		return true, s.tellComplete(ctx)
	case s.pending != nil:
		return false, s.ship(ctx)
	case again: // a server that was set back begins its logs anew
		if known, err := s.askExecuted(ctx); err != nil || !known {
			return true, err
		}
		if err := s.comparePart(ctx, s.lastStored(), s.source.Seen); err != nil {
			return true, s.passing(err)
		}
	}
	moved, err := s.source.advance()
	if err != nil {
		return true, s.passing(err)
	}
	if moved {
		s.noteGap()
	}
	return !moved, nil
}

// unreadable names what is wrong with the server's logs; what does not come from them, as a
// server that does not answer, passes.
func (s *Shipper) unreadable(err error) error {
	for _, why := range []error{binlog.ErrDamaged, binlog.ErrAnonymous, binlog.ErrTagged, binlog.ErrEncrypted,
		binlog.ErrNotABinlog} {
		if errors.Is(err, why) {
			return because(LogUnreadable, fmt.Errorf("%s: %w", s.source.file(), err))
		}
	}
	return err
}

// passing notes an error that may pass, as that of an index that is being replaced.
func (s *Shipper) passing(err error) error {
	if err = s.unreadable(err); isFinal(err) {
		return err
	}
	s.failed(err)
	return nil
}

// collect takes executed transactions from the log until a part is full, or there are no
// more now. big is one that is too large for a part.
func (s *Shipper) collect(ctx context.Context) (big *binlog.Transaction, atEnd bool, err error) {
	for s.pending == nil || !s.pace().IsFull(s.pending.Pending) {
		t, err := s.source.next()
		if errors.Is(err, io.EOF) {
			return nil, true, nil
		}
		if err != nil {
			return nil, false, err
		}
		if !facts.MayShip(t.ID, s.executed) {
			if is, err := s.isExecuted(ctx, t.ID); err != nil || !is {
				return nil, false, err
			}
		}
		if t.Size > s.c.MaxBytes {
			return &t, false, nil
		}
		if s.pending == nil {
			s.pending = s.newPending(t)
		}
		if !s.pace().Takes(s.pending.Pending, t.Size) {
			return nil, false, nil
		}
		s.pending.add(t)
		s.source.pass(t)
	}
	return nil, false, nil
}

// isExecuted asks the server; one that does not answer now has executed nothing new.
func (s *Shipper) isExecuted(ctx context.Context, id gtid.Set) (is bool, err error) {
	known, err := s.askExecuted(ctx)
	return known && facts.MayShip(id, s.executed), err
}

// askExecuted asks the server what it has executed; known is false if it does not answer now. One that was
// set back is refused.
func (s *Shipper) askExecuted(ctx context.Context) (known bool, err error) {
	executed, err := s.c.Executed(ctx)
	if err != nil {
		s.unasked = true
		s.failed(fmt.Errorf("asking what is executed: %w", err))
		return false, nil
	}
	if s.unasked {
		s.unasked = false
		s.passes()
	}
	s.executed = executed
	return true, s.refuseSetBack(executed)
}

// refuseSetBack refuses a server that lacks what was seen of its logs, by what it has said since.
func (s *Shipper) refuseSetBack(executed gtid.Set) error {
	if lost := s.source.SetBack(executed); !lost.IsEmpty() {
		return refuse(ServerSetBack, "in epoch %d the server had executed %s, and lacks them now", s.c.Epoch,
			lost.Abbreviate(4))
	}
	return nil
}

// begin finds out what the store has, and where to go on.
func (s *Shipper) begin(ctx context.Context) error {
	s.pending, s.block, s.asked = nil, nil, time.Time{}
	s.seeks()
	branch, err := retried(ctx, s, 0, s.branch)
	if err != nil {
		return err
	}
	last, err := retried(ctx, s, 0, func(ctx context.Context) (facts.Part, error) {
		return lastPart(ctx, s.c.Store, s.c.Prefix, s.c.Epoch)
	})
	if err != nil {
		return err
	}
	if last.Sequence > 0 && s.writer().Owner(last.Cluster, last.ServerUUID) != facts.Own {
		return refuse(BranchTaken, "part %d of epoch %d is of server %s", last.Sequence, last.Epoch, last.ServerUUID)
	}
	s.sequence = last.Sequence + 1
	s.source.Seen = facts.Reached(branch, last)
	s.executed, err = retried(ctx, s, 0, func(ctx context.Context) (gtid.Set, error) {
		executed, err := s.c.Executed(ctx)
		if err != nil {
			return executed, fmt.Errorf("asking what is executed: %w", err)
		}
		if err := s.refuseSetBack(executed); err != nil {
			return executed, err
		}
		return executed, s.refuseGivenTwice(ctx, branch, last, s.source.Seen)
	})
	if err != nil {
		return err
	}
	s.archived(last)
	_, err = retried(ctx, s, 0, func(context.Context) (struct{}, error) {
		return struct{}{}, s.unreadable(s.source.locate())
	})
	if err == nil {
		s.noteGap()
	}
	return err
}

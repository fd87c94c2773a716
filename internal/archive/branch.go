package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/store"
)

// branch finds or begins the branch of this epoch.
func (s *Shipper) branch(ctx context.Context) (facts.Branch, error) {
	b, err := getBranch(ctx, s.c.Store, s.c.Prefix, s.c.Epoch)
	if errors.Is(err, store.NotFound) {
		b, err = s.newBranch(ctx)
	}
	if errors.Is(err, store.Exists) { // an attempt before has succeeded
		b, err = getBranch(ctx, s.c.Store, s.c.Prefix, s.c.Epoch)
	}
	if err != nil {
		return b, err
	}
	switch s.writer().Owner(b.Cluster, b.ServerUUID) {
	case facts.OfCluster:
		return b, refuse(ForeignArchive, "epoch %d was begun by the cluster %s", b.Epoch, b.Cluster)
	case facts.OfServer:
		return b, refuse(BranchTaken, "epoch %d was begun by %s, server %s", b.Epoch, b.Instance, b.ServerUUID)
	}
	return b, nil
}

func (s *Shipper) writer() facts.Writer {
	return facts.Writer{Cluster: s.c.Cluster, Epoch: s.c.Epoch, Instance: s.c.Instance,
		ServerUUID: s.c.ServerUUID, Group: s.c.Group, Recoveries: s.c.Recoveries}
}

func (s *Shipper) newBranch(ctx context.Context) (facts.Branch, error) {
	before, found, err := s.branchBefore(ctx)
	if err != nil {
		return before, err
	}
	held, err := s.held(ctx, before, found)
	if err != nil {
		return before, err
	}
	b := s.writer().Branch(before, s.c.Start, held, time.Now())
	text, err := json.Marshal(b)
	if err != nil {
		return b, err
	}
	if err := s.may(ctx); err != nil {
		return b, err
	}
	return b, s.c.Store.Create(ctx, branchKey(s.c.Prefix, b.Epoch), append(text, '\n'))
}

// held is what needs no part of the new branch. An archive that is only begun owes nobody
// what was there before it: it begins with what the primary wrote since its promotion, as
// far as its logs reach.
func (s *Shipper) held(ctx context.Context, before facts.Branch, found bool) (gtid.Set, error) {
	if !found {
		first := source{index: s.c.Index, Reader: facts.Reader{Seen: s.c.Start}}
		defer first.close()
		err := first.locate()
		return first.Seen, s.unreadable(err)
	}
	if s.writer().Owner(before.Cluster, before.ServerUUID) == facts.OfCluster {
		return gtid.Set{}, refuse(ForeignArchive, "epoch %d was begun by the cluster %s", before.Epoch, before.Cluster)
	}
	last, err := lastPart(ctx, s.c.Store, s.c.Prefix, before.Epoch)
	if err != nil {
		return gtid.Set{}, err
	}
	held := s.writer().Held(before, last, s.c.Start)
	return held, s.refuseGivenTwice(ctx, before, last, held)
}

// branchBefore finds the newest branch before this one. A newer one ends this one.
func (s *Shipper) branchBefore(ctx context.Context) (b facts.Branch, found bool, err error) {
	epochs, err := listBranches(ctx, s.c.Store, s.c.Prefix)
	if err != nil {
		return b, false, err
	}
	if err := s.ended(epochs); err != nil {
		return b, false, err
	}
	return facts.Before(epochs, s.c.Epoch, func(epoch int64) (facts.Branch, bool, error) {
		b, err := getBranch(ctx, s.c.Store, s.c.Prefix, epoch)
		if errors.Is(err, store.NotFound) && !slices.Contains(epochs, epoch) {
			return b, false, nil
		}
		return b, err == nil, err
	})
}

// ended is an error if one of the epochs that have a branch ends this one.
func (s *Shipper) ended(epochs []int64) error {
	s.asked = time.Now()
	if by, is := facts.Superseded(epochs, s.c.Epoch); is {
		return refuse(PromotionNotHeld, "the archive has a branch of epoch %d already", by)
	}
	return nil
}

// askEnded looks, now and then, for a branch that ends this one. It asks for a few and lists nothing: a
// listing of the archive is long.
func (s *Shipper) askEnded(ctx context.Context) error {
	if !facts.AsksForEnd(s.asked, time.Now()) {
		return nil
	}
	var mu sync.Mutex
	var found []int64
	err := eachOf(ctx, facts.Beyond(s.c.Epoch), readers, func(ctx context.Context, epoch int64) error {
		body, err := s.c.Store.Get(ctx, branchKey(s.c.Prefix, epoch))
		if errors.Is(err, store.NotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("asking whether epoch %d has begun: %w", epoch, err)
		}
		mu.Lock()
		defer mu.Unlock()
		found = append(found, epoch)
		return body.Close()
	})
	if err != nil {
		return err
	}
	return s.ended(found)
}

func listBranches(ctx context.Context, s store.Store, prefix string) (epochs []int64, err error) {
	for object, err := range s.List(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		if k, ok := readKey(prefix, object.Key); ok && k.Sequence == 0 {
			epochs = append(epochs, k.Epoch)
		}
	}
	return epochs, nil
}

// errBranchUnlisted is of a listing that cannot be all that lies there.
var errBranchUnlisted = errors.New("the store has the branch, and does not list it; it is asked again")

// lastPart reads the facts of the last part of a branch; sequence 0 when there is none. A listing
// without the branch is not believed: parts may be in a bundle that it lacks, too.
func lastPart(ctx context.Context, s store.Store, prefix string, epoch int64) (last facts.Part, err error) {
	var bundles []facts.Bundle
	newest, hasBranch := int64(0), false
	for piece, err := range listPieces(ctx, s, epochPrefix(prefix, epoch), prefix) {
		if err != nil {
			return last, err
		}
		bundles, hasBranch = append(bundles, piece.bundles...), hasBranch || piece.branch
		for _, b := range piece.bundles {
			newest = max(newest, b.Last)
		}
		newest = slices.Max(append(piece.numbers, newest))
	}
	if !hasBranch {
		return last, fmt.Errorf("epoch %d: %w", epoch, errBranchUnlisted)
	}
	return facts.Last([]int64{newest}, func(sequence int64) (facts.Part, bool, error) {
		part, err := getPart(ctx, s, prefix, bundles, facts.Key{Epoch: epoch, Sequence: sequence})
		if errors.Is(err, store.NotFound) {
			return part, false, nil
		}
		return part, err == nil, err
	})
}

// getPart reads the facts of a part that lies by itself, or in one of some bundles.
func getPart(ctx context.Context, s store.Store, prefix string, bundles []facts.Bundle,
	key facts.Key) (part facts.Part, err error) {
	part, err = getFacts(ctx, s, prefix, key)
	for _, b := range bundles {
		if !errors.Is(err, store.NotFound) {
			break
		}
		if !b.Holds(key) {
			continue
		}
		var i *index
		if i, err = getBundleHead(ctx, s, prefix, b); err == nil {
			part = i.Parts[key.Sequence-b.First].Part
		}
	}
	return part, err
}

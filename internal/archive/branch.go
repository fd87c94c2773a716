package archive

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/store"
)

// lookBeyond is how many numbers are tried beyond those that a listing tells: it may not
// know yet of what was written last.
const lookBeyond = 8

// branch finds or begins the branch of this epoch.
func (s *Shipper) branch(ctx context.Context) (facts.Branch, error) {
	b, err := getBranch(ctx, s.c.Store, s.c.Prefix, s.c.Epoch)
	if errors.Is(err, store.NotFound) {
		b, err = s.newBranch(ctx)
	}
	if errors.Is(err, store.Exists) { // an attempt before has succeeded
		b, err = getBranch(ctx, s.c.Store, s.c.Prefix, s.c.Epoch)
	}
	switch {
	case err != nil:
		return b, err
	case b.Cluster != s.c.Cluster:
		return b, refuse(ForeignArchive, "epoch %d was begun by the cluster %s", b.Epoch, b.Cluster)
	case b.ServerUUID != s.c.ServerUUID:
		return b, refuse(BranchTaken, "epoch %d was begun by %s, server %s", b.Epoch, b.Instance, b.ServerUUID)
	}
	return b, nil
}

func (s *Shipper) newBranch(ctx context.Context) (facts.Branch, error) {
	b := facts.Branch{Format: format, Cluster: s.c.Cluster, Epoch: s.c.Epoch, Instance: s.c.Instance, ServerUUID: s.c.ServerUUID,
		Start: s.c.Start, CreatedAt: time.Now().UTC()}
	before, found, err := s.branchBefore(ctx)
	if err != nil {
		return b, err
	}
	if b.Held, err = s.held(ctx, before, found); err != nil {
		return b, err
	}
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
		first := source{index: s.c.Index, seen: s.c.Start}
		defer first.close()
		err := first.locate()
		return first.seen, s.unreadable(err)
	}
	if before.Cluster != s.c.Cluster {
		return gtid.Set{}, refuse(ForeignArchive, "epoch %d was begun by the cluster %s", before.Epoch, before.Cluster)
	}
	last, err := lastPart(ctx, s.c.Store, s.c.Prefix, before.Epoch)
	if err != nil {
		return gtid.Set{}, err
	}
	return before.Held.Union(last.Before).Union(last.GTIDs).Intersect(s.c.Start), nil
}

// branchBefore finds the newest branch before this one. A newer one ends this one.
func (s *Shipper) branchBefore(ctx context.Context) (b facts.Branch, found bool, err error) {
	newest := int64(-1)
	epochs, err := listBranches(ctx, s.c.Store, s.c.Prefix)
	if err != nil {
		return b, false, err
	}
	for _, epoch := range epochs {
		if epoch > s.c.Epoch {
			return b, false, refuse(PromotionNotHeld, "the archive has a branch of epoch %d already", epoch)
		}
		newest = max(newest, epoch)
	}
	for epoch := s.c.Epoch - 1; epoch >= max(newest, 0, s.c.Epoch-lookBeyond); epoch-- {
		b, err := getBranch(ctx, s.c.Store, s.c.Prefix, epoch)
		if !errors.Is(err, store.NotFound) {
			return b, err == nil, err
		}
	}
	if newest < 0 {
		return b, false, nil
	}
	b, err = getBranch(ctx, s.c.Store, s.c.Prefix, newest)
	return b, err == nil, err
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

// lastPart reads the facts of the last part of a branch; sequence 0 when there is none.
func lastPart(ctx context.Context, s store.Store, prefix string, epoch int64) (last facts.Part, err error) {
	key := facts.Key{Epoch: epoch}
	dir := branchKey(prefix, epoch)
	for object, err := range s.List(ctx, dir[:len(dir)-len(branchName)]) {
		if err != nil {
			return last, err
		}
		if k, ok := readKey(prefix, object.Key); ok {
			key.Sequence = max(key.Sequence, k.Sequence)
		}
	}
	for key.Sequence = max(key.Sequence, 1); ; key.Sequence++ {
		part, err := getFacts(ctx, s, prefix, key)
		switch {
		case errors.Is(err, store.NotFound):
			return last, nil
		case err != nil:
			return last, err
		}
		last = part
	}
}

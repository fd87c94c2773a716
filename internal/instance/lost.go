package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"cnmsql.co/internal/archive"
	"cnmsql.co/internal/backup"
	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
)

// Lost tells which archived transactions failovers of a cluster have lost. dir has the
// store's files. With an epoch, those that were lost of it are written as a binary log.
func Lost(ctx context.Context, dir, cluster string, epoch int64, out io.Writer) error {
	s, err := store.Open(dir)
	if err != nil {
		return fmt.Errorf("this instance does not reach an archive (%w): "+
			"spec.backup.continuousArchiving has to be enabled", err)
	}
	key, err := seal.Read(dir)
	if err != nil {
		return err
	}
	place := archive.NewPlace(s, backup.LogPrefix(cluster), key)
	a, err := archive.Load(ctx, s, place.Prefix)
	if err != nil {
		return fmt.Errorf("reading what is archived of %s: %w", cluster, err)
	}
	all, err := place.Lost(ctx, &a)
	if err != nil {
		return err
	}
	if epoch == 0 {
		undated := date(ctx, place, all)
		return errors.Join(tellAll(out, all, a), undated)
	}
	lost, ok := facts.LostOf(all, epoch)
	if !ok && len(a.Unreadable) > 0 {
		return fmt.Errorf("nothing of epoch %d is known to be lost, and %s", epoch, unreadableText(a.Unreadable))
	}
	if !ok {
		return fmt.Errorf("nothing that was archived of epoch %d was lost; without --epoch all that was lost is listed",
			epoch)
	}
	return place.WriteLost(ctx, lost, out)
}

// date puts the times of its own commits to all that was lost. What cannot be read keeps the
// times of its parts, between which it was committed.
func date(ctx context.Context, place archive.Place, all []facts.LostBranch) (undated error) {
	for i := range all {
		var err error
		if all[i], err = place.Dated(ctx, all[i]); err != nil {
			undated = errors.Join(undated, fmt.Errorf("when it was committed is known of whole parts only: %w", err))
		}
	}
	return undated
}

// tellAll lists what was lost, and says what of the archive is not known.
func tellAll(to io.Writer, lost []facts.LostBranch, a facts.Archive) error {
	if len(a.Unreadable) > 0 && len(lost) == 0 {
		_, err := fmt.Fprintf(to, "Nothing is known to be lost, but %s.\n", unreadableText(a.Unreadable))
		return err
	}
	err := tellLost(to, lost, a.Branches)
	if err == nil && len(a.Unreadable) > 0 {
		_, err = fmt.Fprintf(to, "This is not all that may be lost: %s.\n", unreadableText(a.Unreadable))
	}
	return err
}

// unreadableText names what cannot be read.
func unreadableText(all []facts.Unreadable) string {
	return fmt.Sprintf("%d of the archive's objects cannot be read: %s", len(all), all[0].Message)
}

// maxLostSet is how many intervals of a set a line shows.
const maxLostSet = 4

func tellLost(to io.Writer, all []facts.LostBranch, branches []facts.Branch) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(to, "No failover has lost a transaction that was archived.")
		return err
	}
	out := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(out, "EPOCH\tPRIMARY\tTRANSACTIONS\tFIRST COMMIT\tLAST COMMIT\tGTIDS")
	for _, l := range all {
		primary := cmp.Or(facts.PrimaryOf(branches, l.Epoch), "?")
		_, _ = fmt.Fprintf(out, "%d\t%s\t%d\t%s\t%s\t%s\n", l.Epoch, primary, l.GTIDs.Count(),
			l.First.UTC().Format(time.RFC3339Nano), l.Last.UTC().Format(time.RFC3339Nano),
			l.GTIDs.Abbreviate(maxLostSet))
	}
	return out.Flush()
}

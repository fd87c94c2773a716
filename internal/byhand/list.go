package byhand

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"cnmsql.co/internal/archive"
	"cnmsql.co/internal/backup"
	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/recovery"
	"cnmsql.co/internal/restore"
	"cnmsql.co/internal/store"
)

// List tells of the backups and of the archive of a cluster, and how far they lead.
func List(ctx context.Context, w Where, out io.Writer) error {
	s, key, err := w.open()
	if err != nil {
		return err
	}
	owner, err := backup.Owner(ctx, s, w.Cluster)
	if errors.Is(err, store.NotFound) {
		return fmt.Errorf("the store has no directory of a cluster %s", w.Cluster)
	}
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "%s of namespace %s, UID %s, since %s\n\n",
		owner.Cluster, owner.Namespace, owner.UID, stamp(owner.CreatedAt))
	server, err := listBackups(ctx, s, w.Cluster, out)
	if err != nil {
		return err
	}
	archived, err := restore.Archived(ctx, s, w.Cluster)
	if err != nil {
		return err
	}
	lost, err := archive.NewPlace(s, backup.LogPrefix(w.Cluster), key).Lost(ctx, archived)
	if err != nil {
		return err
	}
	listArchive(archived, lost, out)
	if server == "" {
		return nil
	}
	o, err := restore.FindIn(ctx, s, key, archived, recovery.Task{Cluster: w.Cluster}, server)
	if err != nil {
		_, _ = fmt.Fprintf(out, "\nIt cannot be restored to the latest: %v\n", err)
		return nil
	}
	plan, err := o.Plan(ctx, o.Base.BeginGTID)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "\nThe latest that can be restored is of %s: backup %s, "+
		"and %d transactions of the archive.\n", stamp(plan.Reached), o.Base.ID, archive.Whole(plan).Of)
	return nil
}

// listBackups returns the version of the newest server that has taken one; "" for none.
func listBackups(ctx context.Context, s store.Store, cluster string, out io.Writer) (server string, err error) {
	entries, err := backup.List(ctx, s, cluster)
	if err != nil {
		return "", err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "BACKUP\tDATA OF\tSIZE\tSTORED\tSERVER\tENCRYPTED TO")
	var end time.Time
	for _, e := range entries {
		if e.Err != nil {
			_, _ = fmt.Fprintf(table, "%s\t%v\n", e.ID, e.Err)
			continue
		}
		if e.End.After(end) {
			end, server = e.End, e.Server
		}
		to := e.Recipient
		if to == "" {
			to = "nobody"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n",
			e.ID, stamp(e.Point), mib(e.RawSize), mib(e.StoredSize), e.Server, to)
	}
	if len(entries) == 0 {
		_, _ = fmt.Fprintln(table, "none")
	}
	return server, table.Flush()
}

func listArchive(a *facts.Archive, lost []facts.LostBranch, out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "\nEPOCH\tBY\tPARTS\tFIRST COMMIT\tLAST COMMIT\tTRANSACTIONS")
	inOrder := func(a, b facts.Branch) int { return cmp.Compare(a.Epoch, b.Epoch) }
	branches := slices.SortedFunc(slices.Values(a.Branches), inOrder)
	for _, b := range branches {
		parts, transactions := int64(0), int64(0)
		var first, last time.Time
		for _, p := range a.Parts {
			if p.Epoch != b.Epoch {
				continue
			}
			parts, transactions = parts+p.Span().Count(), transactions+p.Transactions
			if first.IsZero() || p.First.Before(first) {
				first = p.First
			}
			if p.Last.After(last) {
				last = p.Last
			}
		}
		_, _ = fmt.Fprintf(table, "%d\t%s\t%d\t%s\t%s\t%d\n",
			b.Epoch, b.Instance, parts, stamp(first), stamp(last), transactions)
	}
	if len(branches) == 0 {
		_, _ = fmt.Fprintln(table, "none")
	}
	_ = table.Flush()
	for _, u := range a.Unreadable {
		_, _ = fmt.Fprintf(out, "CANNOT BE READ: epoch %d, part %d: %s\n", u.Key.Epoch, u.Key.Sequence, u.Message)
	}
	for _, l := range lost {
		_, _ = fmt.Fprintf(out, "LOST by a failover, of epoch %d: %s, committed between %s and %s\n",
			l.Epoch, l.GTIDs.Abbreviate(4), stamp(l.First), stamp(l.Last))
	}
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02T15:04:05Z")
}

func mib(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

package plugin

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// WriteBackups prints the list for people.
func WriteBackups(out io.Writer, b Backups) error {
	var text strings.Builder
	p := page{out: &text, now: b.Taken}
	p.line("Cluster", "%s/%s: %s", b.Namespace, b.Cluster, backupsGoTo(b))
	if !b.Gone {
		p.line("Archive", "%s", p.archive(b.Archive))
	}
	if b.Verification != nil {
		p.line("Verified", "%s", p.verified(b.Verification))
	}
	p.schedules(b.Schedules)
	_, _ = fmt.Fprintln(p.out)
	p.backups(b)
	p.line("Window", "%s", b.Window.Text)
	p.line("", "%s", "(by the objects in Kubernetes; a backup whose Backup object was deleted may be in the store "+
		"still, and is not listed)")
	_, err := io.WriteString(out, text.String())
	return err
}

func backupsGoTo(b Backups) string {
	switch {
	case b.Gone:
		return "there is NO SUCH CLUSTER any more; its backups stay in the store"
	case b.Store == "":
		return "spec.backup names no object store"
	}
	return "backups go to " + b.Store
}

// archive says first whether it works.
func (p page) archive(a Archive) string {
	if !a.Enabled {
		return "not enabled"
	}
	text := p.lastArchived(a)
	if a.LastGTID != "" {
		text += ", " + a.LastGTID
	}
	text += waits(a)
	if a.PendingFiles > 0 {
		text += fmt.Sprintf("; %s not archived as a whole", count(a.PendingFiles, "binary log"))
	}
	if a.Missing != "" && a.Reason != string(core.ReasonArchiveGap) { // whose message says it
		text += "; GAP: " + a.Missing + " was purged before it was archived"
	}
	if a.Healthy != nil && !*a.Healthy {
		text += "; " + a.Message
	}
	return text
}

// verified is what the last verification found, or how far the present one is.
func (p page) verified(s *v1alpha1.VerificationStatus) string {
	before := "none succeeded before"
	if s.LastSucceededAt != nil {
		before = "the last that succeeded ended " + ago(p.now, &s.LastSucceededAt.Time) + " ago"
	}
	switch {
	case s.EndedAt == nil:
		return fmt.Sprintf("%s: %s; %s", s.Phase, s.Message, before)
	case s.Phase == v1alpha1.VerificationSucceeded:
		return fmt.Sprintf("yes, %s ago: %s", ago(p.now, &s.EndedAt.Time), s.Message)
	}
	return fmt.Sprintf("NO, %s ago: %s: %s; %s", ago(p.now, &s.EndedAt.Time), s.Reason, s.Message, before)
}

// archiveShort is what a line has room for.
func (p page) archiveShort(a Archive) string { return p.lastArchived(a) + waits(a) }

// waits is what is not archived now, if that is known.
func waits(a Archive) string {
	switch {
	case a.RPOSeconds == nil:
		return ""
	case *a.RPOSeconds == 0:
		return "; nothing waits"
	}
	return fmt.Sprintf("; the oldest that waits is %.1fs old", *a.RPOSeconds)
}

func (p page) lastArchived(a Archive) string {
	text := "in time"
	switch {
	case !a.Enabled:
		return "not enabled"
	case a.Healthy == nil:
		text = "the operator has not said yet how it goes"
	case !*a.Healthy:
		text = "NOT WELL (" + a.Reason + ")"
	}
	if a.LastTime == nil {
		return text + ", nothing archived yet"
	}
	text += fmt.Sprintf(", last archived %s (%s ago)", stamp(*a.LastTime), ago(p.now, a.LastTime))
	if a.CompleteUntil != nil {
		text += fmt.Sprintf(", complete until %s ago", ago(p.now, a.CompleteUntil))
	}
	return text
}

func (p page) schedules(all []Schedule) {
	label := "Schedules"
	if len(all) == 0 {
		p.line(label, "none")
	}
	for _, s := range all {
		p.line(label, "%s (%s%s): %s", s.Name, s.Schedule, blankBefore(s.TimeZone), p.next(s))
		label = ""
	}
}

func blankBefore(s string) string {
	if s == "" {
		return ""
	}
	return " " + s
}

func (p page) next(s Schedule) string {
	text := "the operator has not said yet when the next one comes"
	switch {
	case s.Suspended:
		text = "SUSPENDED"
	case s.Next != nil && s.Next.After(p.now):
		text = fmt.Sprintf("next %s (in %s)", stamp(*s.Next), ago(*s.Next, &p.now))
	case s.Next != nil:
		text = fmt.Sprintf("DUE since %s (%s ago)", stamp(*s.Next), ago(p.now, s.Next))
	case s.Problem != "":
		text = "NO BACKUPS"
	}
	if s.Problem != "" {
		text += ": " + s.Problem
	}
	return text
}

func (p page) backups(b Backups) {
	if len(b.Backups) == 0 {
		sentence(p.out, "Kubernetes has no Backups of %s.", b.Cluster)
		_, _ = fmt.Fprintln(p.out)
		return
	}
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "BACKUP\tPHASE\tINSTANCE\tBEGAN\tTOOK\tSIZE\tSTORED\tID\tSCHEDULE")
	for _, x := range b.Backups {
		cells(w, x.Name, phaseText(x), cmp.Or(x.Instance, "-"), stampOr(x.Began), x.Took, sizedOr(x.Size),
			sizedOr(x.Stored), cmp.Or(x.ID, "-"), cmp.Or(x.Schedule, "-"))
	}
	_ = w.Flush()
	for _, x := range b.Backups {
		if x.Error != "" {
			sentence(p.out, "  %s: %s: %s", x.Name, x.Reason, x.Error)
		}
		if x.OfEarlier {
			sentence(p.out, "  %s: of an EARLIER Cluster of this name; it holds nothing of this one", x.Name)
		}
		if x.Elsewhere != "" {
			sentence(p.out, "  %s: lies at %s, and not where the Cluster's backups go now", x.Name, x.Elsewhere)
		}
	}
	p.encrypted(b.Backups)
	_, _ = fmt.Fprintln(p.out)
}

// encrypted says which key the backups need, for a key may be replaced.
func (p page) encrypted(all []Backup) {
	var recipients []string
	names := map[string][]string{}
	for _, x := range all {
		if to := x.EncryptedTo; to != "" {
			if names[to] == nil {
				recipients = append(recipients, to)
			}
			names[to] = append(names[to], x.Name)
		}
	}
	for _, to := range recipients {
		sentence(p.out, "  encrypted to %s: %s", to, strings.Join(names[to], ", "))
	}
}

func stampOr(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return stamp(*t)
}

func sizedOr(n int64) string {
	if n == 0 {
		return "-"
	}
	return sized(n)
}

// phaseText is how far a Backup is, and that its data are gone.
func phaseText(b Backup) string {
	switch {
	case b.Going != "":
		return fmt.Sprintf("%s, being deleted (%s)", b.Phase, b.Going)
	case b.Removed != "":
		return b.Phase + ", " + b.Removed
	}
	return strings.TrimSpace(b.Phase + " " + b.Percent)
}

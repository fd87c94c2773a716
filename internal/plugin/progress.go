package plugin

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/printable"
)

// changingLine shows how far something is: on a terminal as one line that is drawn again,
// elsewhere as a line a change.
type changingLine struct {
	out io.Writer
	// columns of the terminal; nil where there is none.
	columns func() int
	drawn   bool
	about   string
}

func newChangingLine(out io.Writer) *changingLine {
	l := &changingLine{out: out}
	if f, is := out.(*os.File); is && term.IsTerminal(int(f.Fd())) {
		l.columns = func() int {
			width, _, err := term.GetSize(int(f.Fd()))
			if err != nil || width <= 0 {
				return 80
			}
			return width
		}
	}
	return l
}

// show puts a text in the place of the last one. Off a terminal it is printed only when
// what it is about has changed.
func (l *changingLine) show(text, about string) {
	text = printable.Text(text)
	switch {
	case l.columns != nil:
		// A line that wraps could not be drawn over.
		text = text[:min(len(text), max(0, l.columns()-1))]
		_, _ = fmt.Fprintf(l.out, "\r\x1b[K%s", text)
		l.drawn = true
	case about != l.about:
		_, _ = fmt.Fprintln(l.out, text)
	}
	l.about = about
}

// say prints a line that stays.
func (l *changingLine) say(text string) {
	l.end()
	sentence(l.out, "%s", text)
}

// end leaves the line as it was drawn last.
func (l *changingLine) end() {
	if l.drawn {
		_, _ = fmt.Fprintln(l.out)
		l.drawn = false
	}
}

// barWidth is how many characters the bar has.
const barWidth = 24

// bar is drawn in ASCII, so that a cut of the line cuts no character.
func bar(percent int) string {
	full := min(max(percent, 0), 100) * barWidth / 100
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", barWidth-full) + "]"
}

// backupProgress is how far a running Backup is, and by which percent it is told.
func backupProgress(b *v1alpha1.Backup, now time.Time) (text, percent string) {
	p := b.Status.Progress
	if p == nil || p.TotalBytes == 0 || b.Status.Phase != v1alpha1.BackupRunning {
		return "", ""
	}
	n, _ := strconv.Atoi(strings.TrimSuffix(p.Percent, "%"))
	text = fmt.Sprintf("%s %4s  %s of %s", bar(n), p.Percent, sized(p.Bytes), sized(p.TotalBytes))
	if p.BytesPerSecond > 0 {
		text += fmt.Sprintf("  %s/s", sized(p.BytesPerSecond))
	}
	return text + strings.Replace(endsText(p.ExpectedEnd, now), ", ", "  ", 1), p.Percent
}

// endsText tells when something is expected to end; "" where that is not known, or past.
func endsText(end *metav1.Time, now time.Time) string {
	if end == nil || !end.After(now) {
		return ""
	}
	return fmt.Sprintf(", ends about %s (in %s)", end.UTC().Format("15:04:05Z"), duration.HumanDuration(end.Sub(now)))
}

// sized is a number of bytes for people.
func sized(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/1024, 0
	for value >= 1024 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}

var units = []string{"KiB", "MiB", "GiB", "TiB", "PiB"}

// took is how long a Backup took, until now if it runs; "-" when it has not begun.
func took(b *v1alpha1.Backup, now time.Time) string {
	s := &b.Status
	switch {
	case s.StartedAt == nil:
		return "-"
	case s.StoppedAt != nil:
		now = s.StoppedAt.Time
	}
	return max(0, now.Sub(s.StartedAt.Time)).Round(time.Second).String()
}

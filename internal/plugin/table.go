package plugin

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"cnmsql.co/internal/core"
)

// page writes what people read. Its first lines answer: is it writable, who is
// primary, what is happening, what to do.
type page struct {
	out io.Writer
	now time.Time
}

// WriteTable prints one cluster.
func WriteTable(out io.Writer, r Report) error {
	var text strings.Builder
	p := page{out: &text, now: r.Taken}
	p.head(r)
	p.details(r)
	p.instances(r)
	p.conditions(r)
	p.connect(r.Connect)
	_, err := io.WriteString(out, text.String())
	return err
}

func (p page) line(label, format string, args ...any) {
	sentence(p.out, "%-11s %s", label, fmt.Sprintf(format, args...))
}

func (p page) head(r Report) {
	doubt := ""
	if r.Doubt != "" {
		doubt = " by the operator's last report, which CONTRADICTS what is seen: " + r.Doubt
	}
	p.line("Cluster", "%s/%s: %s, %d of %d instances ready%s", r.Namespace, r.Name, r.Phase, r.Ready, r.Wanted, doubt)
	p.line("Writable", "%s: %s", writableWord(r.Writable), r.WritableBecause)
	p.line("Primary", "%s", p.primary(r))
	p.line("Happening", "%s", inNamespace(r.Namespace, r.Happening))
	if len(r.ToDo) == 0 {
		p.line("To do", "%s", p.nothing(r))
	}
	for i, todo := range r.ToDo {
		p.line([]string{"To do", ""}[min(i, 1)], "%s", todo)
	}
	_, _ = fmt.Fprintln(p.out)
}

func writableWord(w Writable) string {
	switch w {
	case WritableYes, WritableUnknown:
		return string(w)
	case WritableWaiting:
		return "no, writes WAIT"
	default:
		return "NO"
	}
}

// patience is how long a cluster may not be Healthy before it is told what that waits for.
const patience = 30 * time.Second

// nothing is said where no rule knows what to do. The operator mostly goes on by itself, and
// it is not said for ever of one that does not.
func (p page) nothing(r Report) string {
	switch {
	case r.Phase == string(core.PhaseHealthy):
		return "nothing"
	case r.NotHealthySince == nil || p.now.Sub(*r.NotHealthySince) < patience:
		return "nothing yet: the operator continues by itself"
	}
	text := fmt.Sprintf("nothing that is known here, but %s has not been Healthy since %s (%s ago)", r.Name,
		stamp(*r.NotHealthySince), ago(p.now, r.NotHealthySince))
	if names := p.awaited(r); len(names) > 0 {
		text += "; waited for: " + strings.Join(names, ", ")
	}
	return text + fmt.Sprintf("; what has happened: kubectl cnmsql events %s -n %s; whether the operator runs: %s",
		r.Name, r.Namespace, findOperator)
}

// awaited names what stands between a cluster and Healthy.
func (p page) awaited(r Report) []string {
	var out []string
	if op := r.Operation; op != nil {
		text := fmt.Sprintf("the %s at step %s", op.Kind, op.Step)
		if op.Started != nil {
			text += " (for " + ago(p.now, op.Started) + ")"
		}
		out = append(out, text)
	}
	for _, in := range r.Instances {
		if !in.Ready {
			out = append(out, in.Name+" ("+in.State+")")
		}
	}
	for _, reason := range r.Notices {
		out = append(out, string(reason))
	}
	return out
}

func (p page) primary(r Report) string {
	text := cmp.Or(r.Primary, "none yet")
	if r.PrimarySince != nil {
		text += fmt.Sprintf(", since %s (%s ago)", stamp(*r.PrimarySince), ago(p.now, r.PrimarySince))
	}
	if r.Diagnosis != "" && r.Diagnosis != string(core.PrimaryHealthy) && r.Diagnosis != string(core.DiagnosisNone) {
		text += "; " + r.Diagnosis
	}
	if r.FailingSince != nil {
		text += ", failing for " + ago(p.now, r.FailingSince)
	}
	return text
}

func (p page) details(r Report) {
	if op := r.Operation; op != nil {
		p.line("Operation", "%s", p.operation(op))
	}
	if pr := r.Promotion; pr != nil {
		p.line("Promotion", "%s", p.promotion(pr))
	}
	r.topology.promise(p, r)
	if r.Bounds != nil {
		p.line("Bounds", "%s", p.bounds(r.Bounds))
	}
	p.line("Backups", "%s", p.inShort(r))
	p.restore(r.Restore)
	_, _ = fmt.Fprintln(p.out)
}

func (p page) operation(op *Operation) string {
	text := fmt.Sprintf("%s from %s to %s (%s), at step %s", op.Kind, op.From, cmp.Or(op.To, "the instance that "+
		"holds the most"),
		op.Reason, op.Step)
	if op.Meaning != "" {
		text += " (" + op.Meaning + ")"
	}
	if op.Started != nil {
		text += ", for " + ago(p.now, op.Started)
	}
	switch {
	case op.Deadline == nil:
	case op.Deadline.After(p.now):
		text += ", given up in " + ago(*op.Deadline, &p.now)
	default:
		text += ", past its deadline for " + ago(p.now, op.Deadline)
	}
	return text
}

func (p page) promotion(pr *Promotion) string {
	text := fmt.Sprintf("epoch %d to %s", pr.Epoch, pr.Instance)
	if pr.From != "" && pr.From != pr.Instance {
		text += " after " + pr.From
	}
	text += "; proof " + pr.Proof
	if pr.Evidence != "" {
		text += " (" + pr.Evidence + ")"
	}
	if pr.Granted != nil {
		text += "; granted " + stamp(*pr.Granted)
	}
	switch {
	case pr.WritableSince == nil:
		text += ", not writable yet"
	case pr.Resumed:
		text += ", writable again since " + stamp(*pr.WritableSince) + ", after a restart"
	case pr.Granted != nil:
		text += ", writable " + pr.WritableSince.Sub(*pr.Granted).Round(time.Millisecond).String() + " later"
	}
	return text
}

func groupText(g *Group) string {
	if !g.Bootstrapped {
		return cmp.Or(g.Name, "its name is not chosen yet") + ": not made yet"
	}
	return fmt.Sprintf("%s: %s; %s", g.Name, quorumText(g), g.Consistency)
}

// quorumText returns how many members are online and whether the group has its quorum. It says no
// more than that none is seen, because unknown members may be online, and then the group has a
// quorum that nobody sees.
func quorumText(g *Group) string {
	text := fmt.Sprintf("%d of %d members online", g.Online, g.Size)
	if g.HasQuorum {
		return "has its quorum: " + text
	}
	return fmt.Sprintf("NO QUORUM is seen: %s, a majority is %d", text, g.Majority)
}

func durabilityText(d Durability) string {
	if d.Wished == 0 {
		return "async: a commit waits for no replica; a failover can lose the last acknowledged writes"
	}
	text := fmt.Sprintf("%s: each commit should wait for %s", d.Mode, count(d.Wished, "replica"))
	if d.Acks != nil {
		text += fmt.Sprintf("; now it waits for %d, %d attached", *d.Acks, *d.Attached)
	}
	if d.LosslessSince > 0 {
		text += fmt.Sprintf("; each write acknowledged since epoch %d is on %s", d.LosslessSince,
			count(d.Guaranteed, "replica"))
	}
	if d.Status != "" && d.Status != "True" {
		text += "; Durable is " + d.Status + ": " + d.Message
	}
	return text
}

// bounds tells what the user set, in the words of spec.failoverPolicy.
func (p page) bounds(b *Bounds) string {
	var all []string
	if n := b.TransactionsBehind; n != nil {
		all = append(all, fmt.Sprintf("a new primary lacks at most %s", count(int(*n), "transaction")))
	}
	if b.Lag != "" {
		all = append(all, "lags at most "+b.Lag)
	}
	if b.Between != "" {
		text := b.Between + " between failovers"
		if b.NotBefore != nil {
			text += fmt.Sprintf(" (the last was %s ago: NONE BEFORE %s)",
				ago(p.now, b.LastFailover), stamp(*b.NotBefore))
		}
		all = append(all, text)
	}
	if len(b.Preferred) > 0 {
		all = append(all, "preferred: "+strings.Join(b.Preferred, ", "))
	}
	return "spec.failoverPolicy: " + cmp.Or(strings.Join(all, "; "), "none")
}

func (p page) instances(r Report) {
	if len(r.Instances) == 0 {
		_, _ = fmt.Fprint(p.out, "There are no instances yet.\n\n")
		return
	}
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	columns := r.topology.columns()
	if i := slices.Index(columns, "LACKS"); i >= 0 && hasNoReference(r) {
		columns[i] = "HOLDS"
	}
	cells(w, columns...)
	for _, in := range r.Instances {
		values, line := row(in, in.Name == r.topology.reference(r)), []string{}
		for _, column := range columns {
			line = append(line, values[column])
		}
		cells(w, line...)
	}
	_ = w.Flush()
	for _, in := range r.Instances {
		for _, note := range in.Notes {
			sentence(p.out, "  %s: %s", in.Name, note)
		}
	}
	if r.LiveProblem != "" {
		sentence(p.out, "  ?: %s", r.LiveProblem)
	}
	_, _ = fmt.Fprintln(p.out)
}

// hasNoReference reports whether nobody tells what the primary has, so that what others lack of it is not known.
// How much each holds is then what there is to choose by.
func hasNoReference(r Report) bool {
	heard := false
	for _, in := range r.Instances {
		if in.Lacks != nil || in.Name == r.topology.reference(r) && in.Holds != nil {
			return false
		}
		heard = heard || in.Holds != nil
	}
	return heard
}

// row shows "-" for what does not apply to an instance, "?" for what is not
// known. Positions are held against the reference, which has none itself.
func row(in Instance, reference bool) map[string]string {
	lag, lacks, errant, source := "-", "-", "-", "-"
	if !reference {
		lacks, errant = number(in.Lacks), number(in.Errant)
	}
	if in.Source != "" || !reference && !in.Live {
		lag, source = seconds(in.Lag), cmp.Or(in.Source, "?")
	}
	state, role, restarts := in.State, in.Role, "?"
	if in.Stale && state != "Unknown" && state != noPod {
		state += "?"
	}
	if role == "" && in.Live {
		role = "-"
	}
	if in.Clone != nil {
		state = fmt.Sprintf("%s %d%%", in.State, in.Clone.Percent)
		source = in.Clone.Donor
	}
	if in.Restored != "" {
		state = in.State + " " + in.Restored
	}
	if in.Restarts != nil {
		restarts = strconv.Itoa(*in.Restarts)
	}
	ready := "no"
	if in.Ready {
		ready = "yes"
	}
	return map[string]string{"INSTANCE": in.Name, "ROLE": cmp.Or(role, "?"), "STATE": state, "MEMBER": cmp.Or(in.Member,
		"?"), "READY": ready, "LAG": lag, "LACKS": lacks,
		"HOLDS": number(in.Holds), "ERRANT": errant, "SOURCE": source, "VERSION": cmp.Or(in.Version, "?"),
		"NODE": cmp.Or(in.Node, "?"), "RESTARTS": restarts}
}

func seconds(s *float64) string {
	if s == nil {
		return "?"
	}
	d := time.Duration(*s * float64(time.Second))
	if d >= 10*time.Second {
		return d.Round(time.Second).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

func number(n *uint64) string {
	if n == nil {
		return "?"
	}
	return strconv.FormatUint(*n, 10)
}

// conditions repeats no message that was said above.
func (p page) conditions(r Report) {
	label := "Conditions"
	for _, c := range r.NotOK {
		text := fmt.Sprintf("%s is %s (%s)", c.Type, c.Status, c.Reason)
		if c.Message != r.Happening && c.Message != "" {
			text += ": " + inNamespace(r.Namespace, c.Message)
		}
		p.line(label, "%s", text)
		label = ""
	}
	if len(r.NotOK) > 0 {
		_, _ = fmt.Fprintln(p.out)
	}
}

func (p page) connect(c Connect) {
	label, width := "Connect", 0
	for _, s := range c.Services {
		width = max(width, len(s.Address))
	}
	for _, s := range c.Services {
		use := s.For
		if s.RoutedTo != "" {
			use += " (" + s.RoutedTo + ")"
		}
		p.line(label, "%-*s  %s", width, s.Address, use)
		label = ""
	}
	p.line("", "as the user in Secret %s (keys username, password, uri, jdbc-uri)", c.AppSecret)
	for i, command := range c.Commands {
		p.line("", "%s %s", []string{"from here:", "or:       "}[min(i, 1)], command)
	}
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

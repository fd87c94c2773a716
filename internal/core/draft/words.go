package draft

import (
	"slices"
	"strings"

	"cnmsql.co/internal/core"
)

// Tell adds an event.
func (d *Draft) Tell(reason core.Reason, message string) {
	d.Events = append(d.Events, core.Event{Reason: reason, Message: message})
}

// Warn adds an event that is a warning.
func (d *Draft) Warn(reason core.Reason, message string) {
	d.Events = append(d.Events, core.Event{Warning: true, Reason: reason, Message: message})
}

// Announce says a sentence beside all others and tells it as an event, unless the
// status says it already: an event is for what is new.
func (d *Draft) Announce(warning bool, reason core.Reason, sentence string) {
	d.news = append(d.news, sentence)
	if !d.isSaid(sentence) {
		d.Events = append(d.Events, core.Event{Warning: warning, Reason: reason, Message: sentence})
	}
}

// Remark adds a sentence to whatever else is said, for as long as it is true, and tells it
// as an event once.
func (d *Draft) Remark(reason core.Reason, sentence string) {
	d.remarks = append(d.remarks, sentence)
	if !d.isSaid(sentence) {
		d.Warn(reason, sentence)
	}
}

// isSaid: the status says it already.
func (d *Draft) isSaid(sentence string) bool {
	return strings.Contains(d.Cluster.Status.Reason, sentence)
}

// Say sets the sentence that tells what is being done, unless one more important was
// said before.
func (d *Draft) Say(sentence string) {
	if d.doing == "" {
		d.doing = sentence
	}
}

// Block records why nothing can be done; the first hindrance stands.
func (d *Draft) Block(reason core.Reason, message string) {
	if d.blocked == nil {
		d.blocked = &core.Problem{Reason: string(reason), Message: message}
	}
}

// IsBlocked: something stands in the way of all.
func (d *Draft) IsBlocked() bool { return d.blocked != nil }

// Reason puts in words how things stand: the most important that can be said, and what
// was begun. The problem is "" when there is none, and the situation is told when there is
// nothing else to tell. Every hindrance is an event, once.
func (d *Draft) Reason(problem, situation string) string {
	if d.blocked != nil && (d.Cluster.Status.Phase != core.PhaseBlocked || !d.isSaid(d.blocked.Message)) {
		d.Warn(core.Reason(d.blocked.Reason), d.blocked.Message)
	}
	return strings.Join(slices.Concat(d.sentence(problem, situation), d.news, d.remarks), "; ")
}

// sentence is followed by what could not be carried out: that may be small and stay for
// long, and must not hide what is the matter.
func (d *Draft) sentence(problem, situation string) []string {
	if d.blocked != nil {
		return []string{d.blocked.Message}
	}
	said := d.standing(problem, situation)
	if d.Cluster.Failed != "" {
		said = append(said, "could not "+d.Cluster.Failed+"; "+core.TriedAgain)
	}
	return said
}

func (d *Draft) standing(problem, situation string) []string {
	switch {
	case d.doing != "":
		return []string{d.doing}
	case len(d.news) > 0:
		return nil
	case problem != "":
		return []string{problem}
	default:
		return []string{situation}
	}
}

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
// status has a notice of that reason and subject already: an event is for what is new.
func (d *Draft) Announce(warning bool, reason core.Reason, subject, sentence string) {
	d.news = append(d.news, sentence)
	d.notice(warning, core.Notice{Reason: reason, Subject: subject, Message: sentence})
}

// Remark adds a sentence to whatever else is said, for as long as it is true, and tells it
// as an event once.
func (d *Draft) Remark(reason core.Reason, subject, sentence string) {
	d.remarks = append(d.remarks, sentence)
	d.notice(true, core.Notice{Reason: reason, Subject: subject, Message: sentence})
}

func (d *Draft) notice(warning bool, n core.Notice) {
	if d.note(n) {
		d.Events = append(d.Events, core.Event{Warning: warning, Reason: n.Reason, Message: n.Message})
	}
}

// note adds a notice; true when it did not stand before.
func (d *Draft) note(n core.Notice) bool {
	before := slices.IndexFunc(d.Cluster.Status.Notices, n.Is)
	if n.Since = d.Now; before >= 0 {
		n.Since = d.Cluster.Status.Notices[before].Since
	}
	d.notices = append(d.notices, n)
	return before < 0
}

// Doing sets the sentence that tells what is being done, unless one more important was
// said before.
func (d *Draft) Doing(sentence string) {
	if d.doing == "" {
		d.doing = sentence
	}
}

// TellLags says that an instance is not read from because of its lag.
func (d *Draft) TellLags(name string) {
	d.Doing(name + " lags more than spec.readRouting.maxReplicationLag allows, and takes no reads")
}

// Block records why nothing can be done; the first hindrance stands.
func (d *Draft) Block(reason core.Reason, message string) { d.BlockAbout(reason, "", message) }

// BlockAbout is Block where one instance is meant: who asked for it finds the answer by its name.
func (d *Draft) BlockAbout(reason core.Reason, subject, message string) {
	if d.blocked == nil {
		d.blocked = &core.Notice{Reason: reason, Subject: subject, Message: message, Since: d.Now}
	}
}

// IsBlocked reports whether something stands in the way of all.
func (d *Draft) IsBlocked() bool { return d.blocked != nil }

// Conclude puts in words how things stand: the most important that can be said, and what
// was begun. The problem is "" when there is none, and the situation is told when there is
// nothing else to tell. Every hindrance is an event, once.
func (d *Draft) Conclude(problem, situation string) {
	if d.Cluster.Failed != "" { // the event was told when it failed
		d.note(core.Notice{Reason: core.ReasonActionFailed, Message: "could not " + d.Cluster.Failed})
	}
	d.tellReplaced()
	for _, p := range d.Cluster.Asides {
		d.Remark(p.Reason, "", p.Message)
	}
	d.Status.Blocked, d.Status.Notices = d.blocked, d.notices
	d.Status.Past = core.Remember(&d.Cluster.Status, &d.Status, d.Now)
	if before := d.Cluster.Status.Blocked; d.blocked != nil && before != nil && before.Is(*d.blocked) {
		d.blocked.Since = before.Since
	} else if d.blocked != nil {
		d.Warn(d.blocked.Reason, d.blocked.Message)
	}
	d.Status.Reason = strings.Join(slices.Concat(d.sentence(problem, situation), d.news, d.remarks), "; ")
}

// sentence is followed by what could not be carried out: that may be small and stay for
// long, and must not hide what is the matter.
func (d *Draft) sentence(problem, situation string) []string {
	if d.blocked != nil {
		return []string{d.blocked.Message}
	}
	said := d.situation(problem, situation)
	if d.Cluster.Failed != "" {
		said = append(said, "could not "+d.Cluster.Failed+"; it is tried again")
	}
	return said
}

func (d *Draft) situation(problem, situation string) []string {
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

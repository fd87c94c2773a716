package agent

import (
	"fmt"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// MaxAdopted is how many statements of maintenance are forgiven. Who runs more of them on a
// replica does so all the time, and is to be found.
const MaxAdopted = 1000

// Errant is what the binary logs told of the transactions that the primary lacks.
type Errant struct {
	of         gtid.Set
	times      *core.Times
	statements []string
	// Maintenance are those of all that were looked at which change no data.
	Maintenance gtid.Set
}

// Begins reports whether the logs have to be read for these transactions. What was found of
// others is forgotten then.
func (e *Errant) Begins(errant gtid.Set) bool {
	if errant.IsEmpty() || errant.Equal(e.of) {
		return false
	}
	e.of, e.times, e.statements = errant, nil, nil
	return true
}

// Found takes what the logs told of these transactions: when they were committed, some of their
// statements, and which of them are maintenance. Others may be missing in the meantime.
func (e *Errant) Found(errant gtid.Set, times core.Times, statements []string, maintenance gtid.Set) {
	if all := e.Maintenance.Union(maintenance); all.Count() <= MaxAdopted {
		e.Maintenance = all
	}
	if e.of.Equal(errant) {
		e.times, e.statements = &times, statements
	}
}

// TimesOf returns when these transactions were committed; nil while that is not known.
func (e *Errant) TimesOf(errant gtid.Set) *core.Times {
	if errant.IsEmpty() || !errant.Equal(e.of) {
		return nil
	}
	return e.times
}

// Statements are some of the statements that change data.
func (e *Errant) Statements() []string { return e.statements }

// RefusesAdoption tells why a primary commits no empty transactions of these numbers; nil when it
// does, and then their list. Numbers of its own server are never given: it alone gives them, to
// what it writes.
func RefusesAdoption(set gtid.Set, own string) ([]string, *core.Problem) {
	all, few := set.List(MaxAdopted)
	if !few || !set.Of(own).IsEmpty() {
		return nil, &core.Problem{Reason: core.OrderNotAdopted, Message: fmt.Sprintf(
			"%d transactions are too many to adopt, or some are this server's own", set.Count())}
	}
	return all, nil
}

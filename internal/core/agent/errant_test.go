package agent

import (
	"testing"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

const errantServer = "00000000-0000-0000-0000-00000000000e"

func TestErrantTransactionsAreReadOnce(t *testing.T) {
	one, two := gtid.MustParse(errantServer+":1"), gtid.MustParse(errantServer+":1-2")
	var e Errant
	if e.Begins(gtid.Set{}) || !e.Begins(one) || e.Begins(one) {
		t.Error("the logs are read for nothing, or twice for the same transactions")
	}
	at := core.Times{First: time.Unix(1, 0), Last: time.Unix(2, 0)}
	e.Found(one, at, []string{"INSERT"}, gtid.Set{})
	if got := e.TimesOf(one); got == nil || *got != at || len(e.Statements()) != 1 {
		t.Errorf("times %v, statements %q", got, e.Statements())
	}
	if e.TimesOf(two) != nil {
		t.Error("the times of one transaction are told of two")
	}
	if !e.Begins(two) || e.TimesOf(two) != nil || e.Statements() != nil {
		t.Error("what was found of others is not forgotten")
	}
	e.Found(one, at, []string{"INSERT"}, one)
	if e.TimesOf(two) != nil || !e.Maintenance.Equal(one) {
		t.Error("an answer about others counts as the times of these, or its maintenance is lost")
	}
	e.Found(two, at, nil, gtid.MustParse(errantServer+":1-1001"))
	if !e.Maintenance.Equal(one) {
		t.Errorf("%d statements of maintenance are forgiven", e.Maintenance.Count())
	}
}

func TestWhatIsAdopted(t *testing.T) {
	for text, want := range map[string]int{
		errantServer + ":1-3":    3,
		errantServer + ":1-1000": 1000,
		errantServer + ":1-1001": 0,
		errantServer + ":1,00000000-0000-0000-0000-000000000001:7": 0, // a number of its own
	} {
		all, no := RefusesAdoption(gtid.MustParse(text), "00000000-0000-0000-0000-000000000001")
		if len(all) != want || (no == nil) != (want > 0) {
			t.Errorf("%s: %d are adopted, and %v", text, len(all), no)
		}
	}
}

func TestAPrimaryPublishesItselfOnce(t *testing.T) {
	promotion := &core.Promotion{Epoch: 7, Instance: "db-1"}
	for name, change := range map[string]func(f *Facts){
		"":                            func(*Facts) {},
		"it takes no writes":          func(f *Facts) { f.WritableEpoch = 0 },
		"it takes writes of the past": func(f *Facts) { f.WritableEpoch = 6 },
		"the status says so":          func(f *Facts) { f.Cluster.CurrentPrimary = "db-1" },
		"another is promoted": func(f *Facts) {
			f.Cluster.Promotion = &core.Promotion{Epoch: 7, Instance: "db-2"}
		},
		"it has promised not to": func(f *Facts) { f.NoWritesBelow = 8 },
		"it does not know":       func(f *Facts) { f.Cluster = nil },
	} {
		f := &Facts{Me: "db-1", WritableEpoch: 7, Locked: true, Cluster: &Cluster{Epoch: 7, Promotion: promotion}}
		change(f)
		if f.Publishes() != (name == "") {
			t.Errorf("%q: publishes %t", name, f.Publishes())
		}
	}
}

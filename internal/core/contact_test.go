package core

import (
	"testing"
	"time"
)

var contacted = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// contact is what an instance said; nil where it said nothing yet.
func contact(instance string, r *Report) Contact {
	c := Contact{Instance: instance, Begun: contacted}
	if r != nil {
		c.Report, c.Answered = Known(*r, contacted, contacted), true
	}
	return c
}

func TestAnOperatorThatStartsWaitsForAllWhileNobodySpeaksOfTrouble(t *testing.T) {
	online := func(state MemberState) *Report {
		return &Report{Server: &Server{Group: &GroupView{State: MemberOnline, Members: []ViewMember{
			{State: MemberOnline}, {State: state}, {State: state}}}}}
	}
	receives := func(c Replication) *Report { return &Report{Server: &Server{Replication: &c}} }
	writes, closed := &Report{WritableEpoch: 1, Server: &Server{}}, &Report{Server: &Server{}}
	both := func(one, two *Report) []Contact { return []Contact{contact("c-1", one), contact("c-2", two)} }
	follows, refused := receives(Replication{IORunning: true}), contact("c-1", nil)
	refused.Answered = true
	for about, tc := range map[string]struct {
		all    []Contact
		status func(*Status)
		after  time.Duration
		waits  bool
	}{
		"nobody was heard":            {all: both(nil, nil), waits: true},
		"one was, and all is well":    {all: both(writes, nil), waits: true},
		"a replica was":               {all: both(nil, follows), waits: true},
		"all were":                    {all: both(writes, follows)},
		"one is not for a second":     {all: both(writes, nil), after: FirstContact},
		"the primary is closed":       {all: both(closed, nil)},
		"its mysqld is down":          {all: both(&Report{WritableEpoch: 1}, nil)},
		"its manager is not there":    {all: []Contact{refused, contact("c-2", nil)}},
		"its Pod does not run":        {all: []Contact{contact("c-2", follows), contact("c-3", nil)}},
		"a replica has lost it":       {all: both(nil, receives(Replication{}))},
		"a replica hears nothing":     {all: both(nil, receives(Replication{IORunning: true, Silent: true}))},
		"a member is online":          {all: both(nil, online(MemberOnline)), waits: true},
		"a group has lost its quorum": {all: both(nil, online(MemberUnreachable))},
		"a replica has no mysqld":     {all: both(nil, &Report{}), waits: true},
		"a switchover is under way": {all: both(writes, nil),
			status: func(s *Status) { s.Operation = &Operation{} }},
		"a switchover is wished": {all: both(writes, nil),
			status: func(s *Status) { s.TargetPrimary = "c-2" }},
		"all was not well": {all: both(writes, nil),
			status: func(s *Status) { s.Diagnosis = PrimaryUnreachable }},
		"nobody was heard, and all was not well": {all: []Contact{contact("c-1", nil)}, waits: true,
			status: func(s *Status) { s.Diagnosis = PrimaryUnreachable }},
	} {
		s := Status{Diagnosis: PrimaryHealthy, CurrentPrimary: "c-1", TargetPrimary: "c-1"}
		if tc.status != nil {
			tc.status(&s)
		}
		if got := IsFirstContact(&s, tc.all, contacted.Add(tc.after)); got != tc.waits {
			t.Errorf("%s: waits %t", about, got)
		}
	}
}

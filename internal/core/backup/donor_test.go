package backup

import (
	"testing"
	"time"

	"cnmsql.co/internal/core"
)

func primary(name string) Instance { return Instance{Name: name, Primary: true, Ready: true} }
func replica(name string) Instance { return Instance{Name: name, Replica: true, Ready: true} }

// lags is a replica that was so far behind at its last word.
func lags(name string, by time.Duration) Instance {
	in, now := replica(name), time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	in.Lag = core.Known(by, now, now)
	return in
}

func TestDonor(t *testing.T) {
	excluded, unready, joining := replica("c-3"), replica("c-3"), Instance{Name: "c-3", Joining: true}
	closed := primary("c-1")
	excluded.Excluded, unready.Ready, closed.Ready = true, false, false
	prefer, onlyOne, asked := Wish{Instances: 3}, Wish{Instances: 1}, Wish{Instances: 3, Primary: true}
	undecided := Wish{Instances: 3, Primary: true, Undecided: true}
	waited, sampled, early, fenced, stalls := prefer, prefer, prefer, primary("c-1"), primary("c-1")
	waited.Waited, fenced.Excluded, stalls.Stalls = StandbyPatience, true, true
	hangs := Instance{Name: "c-1", Primary: true, Ready: true, Stalls: true, Hangs: true}
	sampled.Waited, sampled.ReplicaOnly, early.Waited = time.Hour, true, StandbyPatience-1
	for name, c := range map[string]struct {
		instances []Instance
		wish      Wish
		want      string
		refused   core.Reason
	}{
		"the last replica":  {[]Instance{primary("c-1"), replica("c-2"), replica("c-3")}, prefer, "c-3", ""},
		"ten is after nine": {[]Instance{replica("c-10"), replica("c-9"), primary("c-1")}, prefer, "c-10", ""},
		"not the primary":   {[]Instance{primary("c-3"), replica("c-1"), replica("c-2")}, prefer, "c-2", ""},
		"the nearest": {[]Instance{primary("c-1"), lags("c-2", 2*time.Second), lags("c-3", time.Minute)},
			prefer, "c-2", ""},
		"the nearest, in any order": {[]Instance{lags("c-4", time.Hour), lags("c-3", time.Minute),
			lags("c-2", 2*time.Minute)}, prefer, "c-3", ""},
		"those that are near are alike": {[]Instance{lags("c-2", 0), lags("c-3", 900*time.Millisecond)}, prefer,
			"c-3", ""},
		"unknown is not near":          {[]Instance{lags("c-2", time.Minute), replica("c-3")}, prefer, "c-2", ""},
		"one that lags is a fallback":  {[]Instance{primary("c-1"), lags("c-2", time.Hour)}, prefer, "c-2", ""},
		"the primary lags nobody":      {[]Instance{primary("c-1"), lags("c-2", 0)}, asked, "c-1", ""},
		"nobody who is excluded":       {[]Instance{primary("c-1"), replica("c-2"), excluded}, prefer, "c-2", ""},
		"nobody who is not ready":      {[]Instance{primary("c-1"), replica("c-2"), unready}, prefer, "c-2", ""},
		"no fallback yet":              {[]Instance{primary("c-1"), unready}, early, "", core.BackupNoDonor},
		"the primary is a fallback":    {[]Instance{primary("c-1"), unready}, waited, "c-1", ""},
		"a replica is still preferred": {[]Instance{primary("c-1"), replica("c-2"), unready}, waited, "c-2", ""},
		"alone for long":               {[]Instance{primary("c-1")}, waited, "c-1", ""},
		"no fallback that is closed":   {[]Instance{closed, unready}, waited, "", core.BackupNoDonor},
		"no fallback that is fenced":   {[]Instance{fenced, unready}, waited, "", core.BackupNoDonor},
		"no fallback that hangs":       {[]Instance{stalls, unready}, waited, "", core.BackupNoDonor},
		"asked for, it may be unknown": {[]Instance{stalls, unready}, asked, "c-1", ""},
		"asked for, it may not hang":   {[]Instance{hangs, replica("c-2")}, asked, "", core.BackupNoDonor},
		"alone, it may not hang":       {[]Instance{hangs}, onlyOne, "", core.BackupNoDonor},
		"no fallback beside a join": {[]Instance{primary("c-1"), unready, {Name: "c-4", Joining: true}}, waited, "",
			core.BackupJoinGoesFirst},
		"no primary where it does not do": {[]Instance{primary("c-1"), unready}, sampled, "", core.BackupNoDonor},
		"alone":                           {[]Instance{primary("c-1")}, onlyOne, "c-1", ""},
		"alone only for now":              {[]Instance{primary("c-1")}, prefer, "", core.BackupNoDonor},
		"alone only soon":                 {[]Instance{primary("c-1"), unready}, onlyOne, "", core.BackupNoDonor},
		"the primary, asked for":          {[]Instance{primary("c-1"), replica("c-2")}, asked, "c-1", ""},
		"the primary is closed":           {[]Instance{closed, replica("c-2")}, asked, "", core.BackupNoDonor},
		"a join goes first": {[]Instance{primary("c-1"), replica("c-2"), joining}, prefer, "",
			core.BackupJoinGoesFirst},
		"nobody knows who went on": {[]Instance{primary("c-1"), replica("c-2")}, undecided, "", core.BackupUndecided},
		"nobody":                   {nil, prefer, "", core.BackupNoDonor},
	} {
		got, refusal := Donor(c.instances, c.wish)
		reason, isFallback := reasonOf(refusal), c.want == "c-1" && c.wish == waited
		if got.Name != c.want || (got.Why != "") != isFallback || reason != c.refused {
			t.Errorf("%s: %+v, %s; want %q, %s", name, got, reason, c.want, c.refused)
		}
	}
}

func reasonOf(r *Refusal) core.Reason {
	if r == nil {
		return ""
	}
	return r.Reason
}

package agent

import (
	"testing"

	"cnmsql.co/internal/core"
)

func TestAnOrderIsObeyedByWhoCanKeepItsPromise(t *testing.T) {
	fit := Standing{Seen: 4, Locked: true, Adopted: true, Data: core.DataPopulated}
	for name, c := range map[string]struct {
		epoch  int64
		change func(*Standing)
		want   core.Reason
	}{
		"of the present epoch":  {4, func(*Standing) {}, ""},
		"of a later epoch":      {5, func(*Standing) {}, ""},
		"of one that has ended": {3, func(*Standing) {}, core.OrderStaleEpoch},
		"by who does not hold the lock": {4, func(s *Standing) { s.Locked = false },
			core.InstanceVolumeInUse},
		"on the volume of another": {4, func(s *Standing) { s.Foreign = true },
			core.InstanceForeignData},
		"on an empty volume of which nothing is known": {4, func(s *Standing) {
			s.Data, s.Adopted = core.DataEmpty,
				false
		}, core.InstanceClusterUnknown},
		"on an empty volume of this Cluster": {4, func(s *Standing) { s.Data = core.DataEmpty }, ""},
	} {
		s := fit
		c.change(&s)
		if no := s.Refuses(c.epoch); (no == nil) != (c.want == "") || no != nil && no.Reason != c.want {
			t.Errorf("%s: refused by %v, not by %q", name, no, c.want)
		}
	}
}

func TestDataIsNeverCopiedOverData(t *testing.T) {
	for _, c := range []struct {
		data     core.DataState
		activity Activity
		donor    string
		want     core.Reason
	}{
		{core.DataScratch, "", "db-1", ""}, {core.DataScratch, "", "", core.OrderNoDonor}, {core.DataPopulated, "",
			"db-1", core.OrderHasData},
		{core.DataScratch, "Cloning", "db-1", ""}, {core.DataScratch, "Cloning", "db-3", core.OrderBusy},
	} {
		no := Standing{Data: c.data, Activity: c.activity, Donor: "db-1"}.RefusesCopy(c.donor)
		if (no == nil) != (c.want == "") || no != nil && no.Reason != c.want {
			t.Errorf("%+v: refused by %v", c, no)
		}
	}
}

func TestWhatIsPromisedIsRememberedBeforeAndATailBegins(t *testing.T) {
	for name, c := range map[string]struct {
		p               Promised
		epoch           int64
		acks            int
		forEver, writes bool
		want            Promised
		begins          bool
	}{
		"the first of an epoch":       {Promised{2, 3, 0, 3}, 4, 1, true, false, Promised{1, 4, 0, 0}, true},
		"more of them":                {Promised{1, 4, 0, 4}, 4, 2, true, true, Promised{2, 4, 0, 4}, false},
		"fewer: the restart must not": {Promised{2, 4, 0, 4}, 4, 1, true, true, Promised{2, 4, 0, 4}, false},
		"it is opened again":          {Promised{1, 4, 0, 4}, 4, 1, true, false, Promised{1, 4, 0, 0}, true},
		"they do not wait for ever":   {Promised{1, 4, 0, 4}, 4, 1, false, true, Promised{1, 4, 0, 0}, false},
	} {
		got, begins := c.p.Before(Awaits{Epoch: c.epoch, Acks: c.acks}, c.forEver, c.writes)
		if got != c.want || begins != c.begins {
			t.Errorf("%s: %+v, a tail begins: %t", name, got, begins)
		}
	}
}

package whatif

import (
	"testing"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// closed is a cluster of three of which the primary has been started again and takes no writes yet.
func closed() *core.Observation {
	o := cluster(3, core.DurabilityQuorum)
	says(o, "db-1", func(r *core.Report) { r.WritableEpoch, r.Server.SuperReadOnly = 0, true })
	return o
}

func lease(o *core.Observation, holder string, epoch int64) {
	o.Cluster.Lease = core.Known(core.Lease{Holder: holder, Epoch: epoch, Version: "78"}, now, now)
}

func TestWhoMayNotTakeWritesOpensForNone(t *testing.T) {
	says1 := func(change func(*core.Report)) func(*core.Observation) {
		return func(o *core.Observation) { says(o, "db-1", change) }
	}
	for name, c := range map[string]struct {
		change func(*core.Observation)
		opens  bool
	}{
		"who may":                     {says1(func(*core.Report) {}), true},
		"without the lock":            {says1(func(r *core.Report) { r.VolumeLocked = false }), false},
		"with a foreign volume":       {says1(func(r *core.Report) { r.Reason = core.InstanceForeignData }), false},
		"after a promise":             {says1(func(r *core.Report) { r.NoWritesBelow = 5 }), false},
		"as another Pod, elsewhere":   {says1(func(r *core.Report) { r.PodUID, r.Node = "other", "n9" }), false},
		"as another Pod on its node":  {says1(func(r *core.Report) { r.PodUID = "other" }), true},
		"before it has what it must":  {says1(func(r *core.Report) { r.Server.Executed = gtid.Set{} }), false},
		"before it has applied":       {says1(unapplied), false},
		"in an epoch that has ended":  {func(o *core.Observation) { o.Cluster.Status.Epoch = 5 }, false},
		"with a lease that is free":   {func(o *core.Observation) { lease(o, "", 0) }, true},
		"with a lease that was taken": {func(o *core.Observation) { lease(o, "", 5) }, false},
		"with another's lease":        {func(o *core.Observation) { lease(o, "db-2", 4) }, false},
		"with a lease not known":      {func(o *core.Observation) { o.Cluster.Lease = core.Fact[core.Lease]{} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			o := closed()
			o.Cluster.Status.Promotion.RequiredGTID = gtid.MustParse(uuid + ":1-900")
			c.change(o)
			m := modelOf(t, o)
			m.open(m.managers["db-1"])
			if got := m.managers["db-1"].report; got.TakesWrites() != c.opens || got.Server.SuperReadOnly == c.opens {
				t.Errorf("takes writes: %t, read-only: %t", got.TakesWrites(), got.Server.SuperReadOnly)
			}
		})
	}
}

func unapplied(r *core.Report) {
	r.Server.Replication = &core.Replication{SourceHost: "db-2.shop.svc", Retrieved: gtid.MustParse(uuid + ":1-1001")}
}

func modelOf(t *testing.T, o *core.Observation) *model {
	t.Helper()
	m, err := newModel(*o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestWhoOpensHasTakenTheLease(t *testing.T) {
	o := closed()
	lease(o, "", 0)
	m := modelOf(t, o)
	m.open(m.managers["db-1"])
	if l, known := m.o.Cluster.Lease.Get(); !known || l.Holder != "db-1" || l.Epoch != 4 || l.Version == "78" {
		t.Errorf("%+v", l)
	}
}

func TestAnOrderIsRefusedAsAnInstanceRefusesIt(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*core.Report)
		obeys  bool
	}{
		"nothing against it":    {func(*core.Report) {}, true},
		"of an epoch long past": {func(r *core.Report) { r.SeenEpoch = 6 }, false},
		"without the lock":      {func(r *core.Report) { r.VolumeLocked = false }, false},
		"with a foreign volume": {func(r *core.Report) { r.Reason = core.InstanceForeignData }, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := cluster(3, core.DurabilityQuorum)
			says(o, "db-1", c.change)
			m := modelOf(t, o)
			obeyed := m.carryOut(core.Demote{Instance: "db-1", Epoch: 5})
			if promised := m.managers["db-1"].report.NoWritesBelow == 5; promised != c.obeys || obeyed != c.obeys {
				t.Errorf("obeyed: %t, promised: %t", obeyed, promised)
			}
		})
	}
}

func TestAnOrderOfTheEpochBeforeStopsNoWrites(t *testing.T) {
	o := cluster(3, core.DurabilityQuorum)
	m := modelOf(t, o)
	m.carryOut(core.Demote{Instance: "db-1", Epoch: 4})
	if r := m.managers["db-1"].report; !r.TakesWrites() || r.NoWritesBelow != 4 || r.Server.SuperReadOnly {
		t.Errorf("%+v", r)
	}
}

func TestAcknowledgementsAreSetAtThePrimaryAndInOrder(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*core.Report)
		obeys  bool
	}{
		"the primary":     {func(*core.Report) {}, true},
		"not the primary": {func(r *core.Report) { r.WritableEpoch = 0 }, false},
		"after a later order": {func(r *core.Report) {
			r.Server.SemiSync.Order, r.Server.SemiSync.OrderEpoch = 9, 4
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := cluster(3, core.DurabilityQuorum)
			says(o, "db-1", c.change)
			m := modelOf(t, o)
			m.carryOut(core.SetAcks{Instance: "db-1", Epoch: 4, Acks: 2, Order: 8})
			if set := m.managers["db-1"].report.Server.SemiSync.Acks == 2; set != c.obeys {
				t.Errorf("set: %t", set)
			}
		})
	}
}

// TestNobodyIsToldToTakeWritesWithoutTheLock holds that the answer promises nothing that the instance would refuse.
func TestNobodyIsToldToTakeWritesWithoutTheLock(t *testing.T) {
	o := cluster(1, core.DurabilityAsync)
	says(o, "db-1", func(r *core.Report) { r.VolumeLocked = false })
	if a := play(t, o, MysqldDown, "db-1"); a.Outcome == Continues {
		t.Errorf("%+v", a)
	}
}

func TestWhoHasPromisedToReceiveNothingReceivesNothing(t *testing.T) {
	for below, receives := range map[int64]bool{4: true, 5: false} {
		o := cluster(3, core.DurabilityQuorum)
		says(o, "db-2", func(r *core.Report) {
			r.NoReceivingBelow, r.Server.Executed = below, gtid.MustParse(uuid+":1-900")
		})
		m := modelOf(t, o)
		m.follow(m.managers["db-2"])
		if got := m.managers["db-2"].report.Server.Executed.Count() == 1000; got != receives {
			t.Errorf("below %d: receives: %t", below, got)
		}
	}
}

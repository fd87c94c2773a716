package instance

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// bell is the doorbell of the operator.
type bell struct {
	Kubernetes
	rings chan string
}

func (b bell) RingDoorbell(_ context.Context, pod, doorbellState string) error {
	b.rings <- pod + " " + doorbellState
	return nil
}

// A switchover leaves all members online and ready: nothing but the doorbell tells.
func TestTheDoorbellIsRungAtEveryChangeOfTheGroupAndAtNothingElse(t *testing.T) {
	m := aMember(t)
	b := bell{rings: make(chan string)}
	m.kube = b
	go newRinger(m).keepRinging(t.Context())
	rung := func() string {
		select {
		case ring := <-b.rings:
			return ring
		case <-time.After(10 * time.Second):
			t.Fatal("it is not rung")
			return ""
		}
	}
	members := func(primary string) (out []core.ViewMember) {
		for _, host := range []string{"db-1", "db-2"} {
			role := map[bool]core.MemberRole{true: core.MemberPrimary, false: core.MemberSecondary}[host == primary]
			out = append(out, core.ViewMember{Host: host, State: core.MemberOnline, Role: role})
		}
		return out
	}
	suspected := members("db-2")
	suspected[0].State = core.MemberUnreachable
	heard := []string{rung()}
	for _, v := range []core.GroupView{
		{State: core.MemberOnline, Role: core.MemberSecondary, ViewID: "v:1", Members: members("db-1")},
		{State: core.MemberOnline, Role: core.MemberPrimary, ViewID: "v:1", Members: members("db-2")},
		{State: core.MemberOnline, Role: core.MemberPrimary, ViewID: "v:2", Members: members("db-2")},
		{State: core.MemberOnline, Role: core.MemberPrimary, ViewID: "v:2", Members: suspected},
		{State: core.MemberError, Members: members("db-2")[1:]},
	} {
		m.sees(&v)
		heard = append(heard, rung())
		more := v
		more.Received = gtid.MustParse("11111111-1111-1111-1111-111111111111:1-9")
		m.sees(&more) // which a transaction does
	}
	want := "db-2 " + doorbellState(core.Report{Server: &core.Server{Group: &core.GroupView{State: core.MemberError,
		Members: members("db-2")[1:]}}})
	if heard[5] != want {
		t.Errorf("last it was %s, and not %s", heard[5], want)
	}
	slices.Sort(heard)
	if len(slices.Compact(heard)) != 6 {
		t.Errorf("some changes sound the same: %q", heard)
	}
}

// deafBell refuses the first rings.
type deafBell struct {
	Kubernetes
	refuses int
	rings   []string
}

func (b *deafBell) RingDoorbell(_ context.Context, _, doorbellState string) error {
	b.rings = append(b.rings, doorbellState)
	if len(b.rings) <= b.refuses {
		return errors.New("down")
	}
	return nil
}

func TestARingThatWasRefusedIsRungAgainUntilItIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, b := aMember(t), &deafBell{refuses: 3}
		m.kube = b
		ctx, stop := context.WithCancel(t.Context())
		go newRinger(m).keepRinging(ctx)
		time.Sleep(time.Minute)
		stop()
		synctest.Wait()
		if len(b.rings) != 4 || len(slices.Compact(b.rings)) != 1 {
			t.Errorf("rung were %q", b.rings)
		}
	})
}

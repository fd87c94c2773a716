package agent

import (
	"testing"

	"cnmsql.co/internal/core"
)

func TestThePasswordOfASecretIsFollowedWhoeverIsThePrimary(t *testing.T) {
	for what, c := range map[string]struct {
		facts PasswordFacts
		want  PasswordStep
	}{
		"a Secret that was followed, here or by another primary": {
			PasswordFacts{Recorded: true, Place: 0}, KeepPassword},
		"one that changed while nobody took writes, or before a failover lost the change": {
			PasswordFacts{Recorded: true, Place: -1}, SetPassword},
		"the data of another cluster, or of an earlier release": {PasswordFacts{}, SetPassword},
		"an earlier release has followed it on this volume":     {PasswordFacts{Agreed: true}, NotePassword},
		"somebody made the account, and chose its password":     {PasswordFacts{ByHand: true}, NotePassword},
		"the Secret has changed since": {
			PasswordFacts{ByHand: true, Changed: true}, SetPassword},
		"what the volume remembers counts for less than the data": {
			PasswordFacts{Recorded: true, Place: -1, Agreed: true}, SetPassword},
		"this kubelet may be slower than the former primary's": {
			PasswordFacts{Recorded: true, Place: 1, Agreed: true, Unchanged: SecretPatience - 1}, AwaitSecret},
		"it is not: the Secret was set back": {
			PasswordFacts{Recorded: true, Place: 1, Unchanged: SecretPatience}, SetPassword},
		"this Pod had the newer one: the Secret was set back": {
			PasswordFacts{Recorded: true, Place: 3, Held: true}, SetPassword},
	} {
		if got := c.facts.Step(); got != c.want {
			t.Errorf("%s: step %d, want %d", what, got, c.want)
		}
	}
}

func TestAnAccountIsChangedWhereThatWaitsForNobody(t *testing.T) {
	view := func(mine core.MemberState, others ...core.MemberState) *core.Server {
		v := &core.GroupView{State: mine, Role: core.MemberPrimary, Members: []core.ViewMember{{State: mine}}}
		for _, state := range others {
			v.Members = append(v.Members, core.ViewMember{State: state})
		}
		return &core.Server{Group: v}
	}
	acks := func(c core.SemiSync) *core.Server { return &core.Server{SemiSync: c} }
	for what, c := range map[string]struct {
		server *core.Server
		want   bool
	}{
		"nobody acknowledges anything": {acks(core.SemiSync{}), true},
		"enough acknowledge":           {acks(core.SemiSync{SourceEnabled: true, Clients: 1, Acks: 1}), true},
		"too few acknowledge":          {acks(core.SemiSync{SourceEnabled: true, Acks: 1}), false},
		"a commit waits": {
			acks(core.SemiSync{SourceEnabled: true, Clients: 1, Acks: 1, WaitSessions: 1}), false},
		"another changes one": {acks(core.SemiSync{LocksAccounts: true}), false},
		"a majority is reached": {
			view(core.MemberOnline, core.MemberOnline, core.MemberUnreachable), true},
		"a group without its majority": {
			view(core.MemberOnline, core.MemberUnreachable, core.MemberUnreachable), false},
		"half of a group": {view(core.MemberOnline, core.MemberUnreachable), false},
		"no member of it": {view(core.MemberOffline), false},
	} {
		if got := MayChangeAccounts(c.server); got != c.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}

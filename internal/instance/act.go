package instance

import (
	"context"
	"fmt"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

func (m *manager) do(ctx context.Context, a agent.Action) error {
	switch a := a.(type) {
	case agent.MakeData:
		if a.From.IsElsewhere() {
			return m.restorer.makeData(m.object())
		}
		return m.maker.makeData(m.object(), a.From)
	case agent.StartServer:
		return m.startServer(ctx)
	case agent.StopServer:
		return m.stopServer(a)
	case agent.Abort:
		return m.activities.end(ctx, failureOf(a), m.killMysqld)
	case agent.CloneFrom:
		return m.cloner.cloneFrom(a.Donor)
	case agent.Demote:
		return m.stopWrites()
	case agent.AcquireLease:
		return m.leases.acquire(ctx, a.Epoch)
	case agent.ConfirmPromotion:
		return m.leases.confirmPromotion(ctx, a.Epoch)
	case agent.BecomePrimary:
		return m.becomePrimary(ctx, a)
	case agent.BecomeFollower:
		return m.becomeFollower(a)
	case agent.AskPrimary:
		return m.inquirer.askPrimary(a)
	case agent.DropAcks:
		return m.acks.dropAcks()
	case agent.AskWord:
		return m.inquirer.askWord()
	case agent.AskHeld:
		m.inquirer.askHeld(a)
		return nil
	case agent.CutTail:
		if err := (tailCutter{m.opt.Dirs, m.log}).cut(a); err != nil {
			return err
		}
		return m.forgetTail()
	case agent.BootstrapGroup:
		return m.membership.bootstrapGroup(ctx, a)
	case agent.JoinGroup:
		return m.membership.startGroup(false)
	case agent.LeaveGroup:
		return m.membership.leaveGroup(a)
	case agent.RememberGroup:
		return m.membership.rememberGroup(a.Of)
	case agent.ForgetData:
		return m.maker.forgetData()
	}
	ctx, cancel := context.WithTimeout(ctx, agent.StatementLimit)
	defer cancel()
	return m.say(ctx, a)
}

// failureOf is with what an activity that is aborted has failed; nil when it has not.
func failureOf(a agent.Abort) error {
	if a.Reason == "" {
		return nil
	}
	return &namedError{core.Problem{Reason: a.Reason, Message: a.Why}, agent.StuckPause}
}

// say carries out what is a few statements.
func (m *manager) say(ctx context.Context, a agent.Action) error {
	switch a := a.(type) {
	case agent.StopReceiving:
		return m.roles.StopReceiving(ctx)
	case agent.StartReceiving:
		return m.startReceiving(ctx)
	case agent.StartApplying:
		m.acks.awaitAcksNoLonger()
		m.update(func(s *state) { s.status.applying.tried = time.Now() })
		return m.roles.StartApplying(ctx)
	case agent.AcceptClients:
		return m.acceptClients(ctx)
	case agent.GiveAcks:
		return m.acks.giveAcks(ctx, a.On)
	case agent.WaitApplied:
		return m.waitApplied(ctx, a)
	case agent.Follow:
		return m.follow(ctx, a)
	case agent.FollowServer:
		return m.followServer(ctx, a)
	case agent.BecomeWhole:
		return m.provenance.becomeWhole()
	case agent.NoteReceiving:
		return m.provenance.receives()
	case agent.SettleRole:
		return m.membership.settleRole(ctx, a.Role)
	case agent.CloseForWrites:
		return m.membership.closeForWrites(ctx)
	case agent.OpenForWrites:
		return m.membership.openForWrites(ctx)
	case agent.EndBootstrap:
		return m.membership.endBootstrap(ctx)
	case agent.AdmitMembers:
		return m.membership.admitMembers(ctx, a.Addresses)
	case agent.HoldRejoin:
		return m.membership.holdRejoin(ctx, a.On)
	case agent.HoldExpulsion:
		return m.membership.holdExpulsion(ctx, a.On)
	case agent.ForgetFormer:
		return m.membership.forgetFormer(ctx, a.View)
	case agent.RaiseProtocol:
		return m.membership.raiseProtocol(ctx, a.Version)
	}
	return fmt.Errorf("nobody knows how to %s", a)
}

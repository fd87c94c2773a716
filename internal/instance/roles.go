package instance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/mysql"
)

// becomePrimary opens the server for writes. The order is what keeps an
// acknowledged write: acknowledgements are required before the first write can
// be, sessions that came for reading are closed before they could write, and the
// permission is looked at once more at the last moment.
func (m *manager) becomePrimary(ctx context.Context, a agent.BecomePrimary) error {
	ctx, cancel := context.WithTimeout(ctx, agent.StatementLimit)
	defer cancel()
	if get(m, func(s *state) bool { return s.status.server != nil && s.status.server.Replication != nil }) {
		if err := m.roles.ForgetSource(ctx); err != nil {
			return err
		}
	}
	if err := m.acks.renewAcks(ctx); err != nil {
		return err
	}
	if err := m.acks.requireAcks(ctx, agent.Awaits{Epoch: a.Epoch, Acks: a.Acks}); err != nil {
		return err
	}
	if _, writes := m.mayWrite(); !writes { // else only the epoch changes
		if err := m.sessions.closeAll(ctx); err != nil {
			return err
		}
		// Commits wait until replicas have connected, which would take the longer the more
		// there is in the last file.
		if err := m.roles.BeginBinaryLog(ctx); err != nil {
			return err
		}
	}
	opens := func(r *volumeRecord) { r.WasPrimaryEpoch = a.Epoch; r.setCached(r.cached().Opens()) }
	if err := m.record.change(opens); err != nil {
		return err
	}
	m.inquirer.opens()
	semiSync, err := m.roles.SemiSync(ctx)
	if err != nil {
		return err
	}
	if err := m.acceptWrites(a.Epoch); err != nil {
		return err
	}
	m.update(func(s *state) {
		s.mysqld.takesWrites(a.Epoch)
		if s.status.server != nil {
			server := *s.status.server
			server.SuperReadOnly, server.ReadOnly, server.Offline = false, false, false
			server.Replication, server.SemiSync = nil, semiSync
			s.status.server = &server
		}
	})
	poke(m.keeper.wake)
	m.log.Info("this instance is the primary, and takes writes", "epoch", a.Epoch, "acks", a.Acks)
	return nil
}

// opensForWrites notes that this instance may write. From now on it has to be looked whether it
// must isolate itself, and a demotion has to close it before it is told. Only then it is looked
// whether it may open at all, so that what comes in between is seen by one of both; if it may not,
// the note is taken back, and an error returned.
func (m *manager) opensForWrites(epoch int64) error {
	_, was := m.mayWrite()
	m.update(func(s *state) { s.mysqld.mayWrite = true })
	if !m.facts().MayOpen(epoch) {
		m.update(func(s *state) { s.mysqld.mayWrite = was })
		return errors.New("becoming primary: the promotion was withdrawn, or the lease has run out meanwhile")
	}
	poke(m.isolator.wake)
	return nil
}

// acceptWrites is never given up half way: a statement that is on its way when its
// connection is closed could be executed after a later demotion. If its answer is
// lost, mysqld is killed, which starts read-only.
func (m *manager) acceptWrites(epoch int64) error {
	proc := get(m, func(s *state) *process { return s.mysqld.proc })
	if err := m.opensForWrites(epoch); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), agent.OpenLimit)
	defer cancel()
	err := m.roles.AcceptWrites(ctx)
	if err == nil || mysql.IsAnswer(err) {
		return err
	}
	wait, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	return errors.Join(fmt.Errorf("mysqld does not say whether it became writable, and is killed: %w",
		err), proc.kill(wait))
}

func (m *manager) waitApplied(ctx context.Context, a agent.WaitApplied) error {
	reached, err := m.roles.WaitForGTID(ctx, a.Set, agent.AppliedLimit)
	if err != nil || reached {
		return err
	}
	poke(m.wake)
	if a.Alone {
		return m.sessions.closeAll(ctx)
	}
	return nil
}

// acceptClients lets clients read from a replica.
func (m *manager) acceptClients(ctx context.Context) error {
	if err := m.roles.AcceptClients(ctx); err != nil {
		return err
	}
	m.update(func(s *state) {
		if s.status.server != nil {
			server := *s.status.server
			server.Offline = false
			s.status.server = &server
		}
	})
	return nil
}

// follow points replication at the primary. While the account's Secret cannot be used, a channel that exists
// keeps the account that it has.
func (m *manager) follow(ctx context.Context, a agent.Follow) error {
	account, unusable := m.opt.Dirs.replicationAccount()
	if err := m.noteReceiving(); err != nil {
		return err
	}
	m.acks.awaitAcksNoLonger() // it may have been about to become the primary
	m.update(func(s *state) { s.status.receiveTry = time.Now() })
	if err := m.stopOtherChannels(ctx); err != nil {
		return errors.Join(unusable, err)
	}
	d := m.opt.Dirs
	err := m.roles.BecomeReplicaOf(ctx, mysql.Source{
		Host: m.opt.Peer(a.Instance), Port: m.opt.AdminPort, Account: account,
		CAFile: d.ca(), CertFile: d.cert(), KeyFile: d.key(), Refuses: a.Refuses,
	})
	if err != nil {
		return errors.Join(unusable, err)
	}
	if unusable != nil {
		m.log.Warn("cannot read the replication account; the channel keeps the account that it had", "error", unusable)
	}
	return m.forgetTail()
}

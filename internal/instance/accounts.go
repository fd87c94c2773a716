package instance

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/mysql"
)

const (
	accountsInterval = 5 * time.Second
	// doorInterval is between two looks whether the internal accounts are let in.
	doorInterval = 10 * time.Second
	// accountsLimit bounds what changes an account: until it is over, nobody may be able
	// to log in.
	accountsLimit = 5 * time.Second
	// accountsPauseMost is the longest pause before what failed is tried again.
	accountsPauseMost = 5 * time.Minute
)

// accessState is whether mysqld lets its manager in.
type accessState struct {
	// refused by the present process, with every account that was tried, since refusedSince.
	refused      bool
	refusedSince time.Time
	// locked: a session that waits for acknowledgements changes an account, and nobody can
	// log in, nor ask for most of what a status is made of.
	locked bool
	// former are the passwords that the manager's account had, the newest first.
	former []mysql.Account
}

// startsAnew: nobody has tried yet whether a process that was just started lets us in.
func (s *accessState) startsAnew() { s.refused, s.refusedSince, s.locked = false, time.Time{}, false }

// refusedPatience is how long the primary's manager may take to restore its own account.
const refusedPatience = 5 * time.Second

// noteRefused notes whether the manager's account was refused. The manager of a server that
// takes writes may restore it, and is given some time for that.
func (s *accessState) noteRefused(refused, writes bool) {
	switch {
	case !refused:
		s.refused, s.refusedSince = false, time.Time{}
	case s.refusedSince.IsZero():
		s.refusedSince = time.Now()
	}
	s.refused = refused && (!writes || time.Since(s.refusedSince) >= refusedPatience)
}

// keeper is what the keeping of accounts remembers from one look to the next.
type keeper struct {
	looked   time.Time
	failures int
	again    time.Time
	// toSpread: this server's accounts were restored, and the replicas' were not.
	toSpread bool
}

// keepAccounts has the primary's internal accounts be what they should be, and all
// accounts follow the passwords in the Secrets.
func (m *manager) keepAccounts(ctx context.Context) {
	tick := time.NewTicker(accountsInterval)
	defer tick.Stop()
	var k keeper
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-m.accountsWake: // it became the primary, or is refused
			k.looked, k.again = time.Time{}, time.Time{}
		}
		if get(m, func(s *state) int64 { return s.mysqld.writable }) == 0 {
			k = keeper{}
			continue
		}
		if time.Now().Before(k.again) {
			continue
		}
		if err := m.lookAfterAccounts(ctx, &k); err != nil && ctx.Err() == nil {
			k.failures++
			k.again = time.Now().Add(min(accountsInterval<<min(k.failures, 10), accountsPauseMost))
			m.log.Warn("looking after the accounts; it is tried again", "error", err, "again",
				time.Until(k.again).Round(time.Second).String())
			continue
		}
		k.failures = 0
	}
}

// lookAfterAccounts mends this server first, which waits for nobody: what is missing may
// be what replicas need to acknowledge. What reaches the replicas is a commit like any
// other, and is begun only while enough of them acknowledge.
func (m *manager) lookAfterAccounts(ctx context.Context, k *keeper) error {
	if get(m, func(s *state) bool { return s.access.locked }) {
		return nil // nobody can log in
	}
	if time.Since(k.looked) >= doorInterval {
		if err := m.mendAccounts(ctx, k); err != nil {
			return err
		}
		k.looked = time.Now()
	}
	if !m.isAcknowledged() {
		return nil
	}
	if k.toSpread {
		if err := m.restore(ctx, mysql.Everywhere); err != nil {
			return err
		}
		k.toSpread = false
		m.log.Info("the replicas are given the internal accounts")
	}
	return m.followSecrets(ctx)
}

// isAcknowledged: a commit would not wait at this moment. Whoever waits while it changes
// an account keeps everybody else from logging in, the replicas too.
func (m *manager) isAcknowledged() bool {
	return get(m, func(s *state) bool {
		if s.status.server == nil || !s.answers() {
			return false
		}
		c := s.status.server.SemiSync
		return !c.LocksAccounts && (!c.SourceEnabled || c.WaitSessions == 0 && c.Clients >= c.Acks)
	})
}

// mendAccounts logs in as the internal accounts do, and restores them on this server if
// they are not let in, or may not do what they are for.
func (m *manager) mendAccounts(ctx context.Context, k *keeper) error {
	wrong := m.tryDoors(ctx)
	if wrong == nil {
		return nil
	}
	m.log.Warn("the internal accounts are restored", "because", wrong)
	if err := m.restore(ctx, mysql.Here); err != nil {
		return errors.Join(wrong, err)
	}
	k.toSpread = true
	m.resetConnections()
	return nil
}

// tryDoors tells what a server's own word is against; what cannot be tried is not known.
func (m *manager) tryDoors(ctx context.Context) error {
	internal, err := m.internalAccounts()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, accountsLimit)
	defer cancel()
	conf, err := m.tls.client(m.opt.Peer(m.opt.Instance))
	if err != nil {
		return err
	}
	address := net.JoinHostPort(m.opt.PodIP, strconv.Itoa(m.opt.AdminPort))
	for _, err := range []error{
		mysql.CheckReplication(ctx, address, conf, internal.Replication),
		mysql.CheckManager(ctx, m.opt.Dirs.socket(), internal.Manager),
	} {
		var wrong *mysql.AccountError
		if errors.As(err, &wrong) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			m.log.Debug("an internal account cannot be tried", "error", err)
		}
	}
	return nil
}

// restore makes the internal accounts what they should be, as root, or else, with what it
// may do, as the manager.
func (m *manager) restore(ctx context.Context, scope mysql.Scope) error {
	internal, err := m.internalAccounts()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, accountsLimit)
	defer cancel()
	err = m.root.Restore(ctx, internal, scope)
	if mysql.IsAccessDenied(err) {
		err = errors.Join(fmt.Errorf("root@localhost cannot do it: %w", err), m.metrics.Restore(ctx, internal, scope))
	}
	return err
}

func (m *manager) internalAccounts() (i mysql.Internal, err error) {
	if i.Manager, err = readAccount(m.opt.Dirs.Control); err != nil {
		return i, err
	}
	i.Replication, err = readAccount(m.opt.Dirs.Replication)
	return i, err
}

func (m *manager) rootAccounts() ([]mysql.Account, error) {
	a, err := readAccount(m.opt.Dirs.Root)
	return []mysql.Account{a}, err
}

// restoring has mysqld restore the internal accounts while it starts, before it lets
// anybody in: a server that is read-only cannot be helped otherwise. Without it mysqld
// starts all the same.
func (m *manager) restoring(c *v1alpha1.Cluster) []string {
	if get(m, func(s *state) core.DataState { return s.volume.data }) != core.DataPopulated {
		return nil // it has accounts of its own, until it is cloned
	}
	for name := range c.Spec.MySQL.Parameters {
		if mysql.NormalParameter(name) == "init_file" {
			return nil
		}
	}
	internal, err := m.internalAccounts()
	if err == nil {
		err = os.WriteFile(m.initFilePath(), []byte(internal.InitFile()), 0o600)
	}
	if err != nil {
		m.log.Warn("mysqld starts without looking at the internal accounts", "error", err)
		return nil
	}
	return []string{"--init-file=" + m.initFilePath()}
}

func (m *manager) initFilePath() string { return filepath.Join(m.opt.Dirs.Run, "accounts.sql") }

// dropInitFile: it holds passwords, and was read.
func (m *manager) dropInitFile() { _ = os.Remove(m.initFilePath()) }

// secret is an account of a Secret, and from where it logs in.
type secret struct {
	account mysql.Account
	hosts   []string
}

func (m *manager) secrets() ([]secret, string, error) {
	d := m.opt.Dirs
	var out []secret
	sum := sha256.New()
	for _, s := range []struct {
		dir   string
		hosts []string
	}{
		{d.Replication, []string{"%"}}, {d.App, []string{"%"}}, {d.Root, []string{"localhost", "%"}},
		{d.Control, []string{"localhost"}}, // last: it is the account that does this
	} {
		a, err := readAccount(s.dir)
		if err != nil {
			return nil, "", err
		}
		_, _ = fmt.Fprintf(sum, "%q %q;", a.User, a.Password)
		out = append(out, secret{a, s.hosts})
	}
	return out, fmt.Sprintf("%x", sum.Sum(nil)), nil
}

// followSecrets changes passwords when the Secrets have changed since this
// instance last knew both to agree. Only a digest is remembered.
func (m *manager) followSecrets(ctx context.Context) error {
	accounts, sum, err := m.secrets()
	if err != nil {
		return err
	}
	was := m.memory.get().Accounts
	if was == sum {
		return nil
	}
	if was != "" {
		ctx, cancel := context.WithTimeout(ctx, accountsLimit)
		defer cancel()
		for _, s := range accounts {
			for _, host := range s.hosts {
				if err := m.metrics.ChangePassword(ctx, s.account, host); err != nil {
					return err
				}
			}
		}
		m.log.Info("the accounts have the passwords of the Secrets")
	}
	return m.memory.change(func(r *remembered) { r.Accounts = sum })
}

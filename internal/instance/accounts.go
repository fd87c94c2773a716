package instance

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
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

// startsAnew forgets what an earlier process refused: nobody has tried yet whether one that was
// just started lets us in.
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

// accountKeeper keeps the accounts of a primary as they should be.
type accountKeeper struct {
	opt Options
	log *slog.Logger
	tls *tlsFiles
	by  accountsKept
	// asks is mysqld, as the manager's account asks it, and root as root does.
	asks, root func() *mysql.Server
	// wake has the accounts looked at now.
	wake chan struct{}

	// Only keepAccounts knows what follows.
	now keeping
}

// keeping is what an accountKeeper remembers from one look to the next.
type keeping struct {
	looked time.Time
	// mending is until the internal accounts are mended again, after that has failed.
	mending pause
	// toSpread: this server's accounts were restored, and the replicas' were not.
	toSpread bool
	// doubles were dropped on this server, and are to be on the replicas'.
	doubles []mysql.AccountName
	// passwords is what is known of the Secrets' passwords.
	passwords passwordsKnown
}

// pause is one that gets longer with each failure in a row.
type pause struct {
	failures int
	until    time.Time
}

func (p *pause) isOver() bool { return !time.Now().Before(p.until) }

// after begins one after a failure, and ends it after a success.
func (p *pause) after(err error) {
	if err == nil {
		*p = pause{}
		return
	}
	p.failures++
	p.until = time.Now().Add(min(accountsInterval<<min(p.failures, 10), accountsPauseMost))
}

// accountsKept is what an accountKeeper asks of its manager.
type accountsKept interface {
	// takesWrites: clients may write to the server.
	takesWrites() bool
	// accountsLocked: nobody can log in, for a statement that changes an account waits.
	accountsLocked() bool
	// isAcknowledged: a commit would not wait at this moment.
	isAcknowledged() bool
	// dataState is what the volume holds.
	dataState() core.DataState
	// kept is what stands on the volume, and keep changes it.
	kept() volumeRecord
	keep(change func(*volumeRecord)) error
	// resetConnections has the manager log in again.
	resetConnections()
}

func newAccountKeeper(m *manager) *accountKeeper {
	return &accountKeeper{opt: m.opt, log: m.log, tls: m.tls, by: m, wake: make(chan struct{}, 1),
		asks: func() *mysql.Server { return m.metrics }, root: func() *mysql.Server { return m.root }}
}

// keepAccounts has the primary's internal accounts be what they should be, and all
// accounts follow the passwords in the Secrets.
func (k *accountKeeper) keepAccounts(ctx context.Context) {
	tick := newTicker(accountsInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			tick.again()
		case <-k.wake: // it became the primary, or is refused
			k.now.looked, k.now.mending.until, k.now.passwords.pause.until = time.Time{}, time.Time{}, time.Time{}
		}
		if !k.by.takesWrites() {
			k.now = keeping{}
			continue
		}
		k.lookAfterAccounts(ctx)
	}
}

// note tells what has failed, and has it tried again later.
func (k *accountKeeper) note(ctx context.Context, p *pause, err error) {
	if ctx.Err() != nil {
		return
	}
	if p.after(err); err != nil {
		k.log.Warn("cannot check or restore the internal accounts; the manager tries again", "error", err, "retryIn",
			time.Until(p.until).Round(time.Second).String())
	}
}

// lookAfterAccounts mends this server first, which waits for nobody: what is missing may
// be what replicas need to acknowledge. What reaches the replicas is a commit like any
// other, and is begun only while enough of them acknowledge, and a group has its majority.
// A Secret that cannot be used, or an account that cannot be changed, keeps nothing else waiting.
func (k *accountKeeper) lookAfterAccounts(ctx context.Context) {
	if k.by.accountsLocked() {
		return // nobody can log in
	}
	if k.now.mending.isOver() && time.Since(k.now.looked) >= doorInterval {
		err := k.mendAccounts(ctx)
		if err == nil {
			k.now.looked = time.Now()
		}
		k.note(ctx, &k.now.mending, err)
	}
	if !k.by.isAcknowledged() {
		return
	}
	if k.now.toSpread {
		if !k.now.mending.isOver() {
			return
		}
		if err := k.restore(ctx, mysql.Everywhere); err != nil {
			k.note(ctx, &k.now.mending, err)
			return
		}
		k.now.toSpread, k.now.doubles = false, nil
		k.log.Info("the primary wrote the internal accounts anew, so that replicas receive them")
	}
	if accounts, sum, err := k.opt.Dirs.secrets(); k.now.passwords.isDue(sum) {
		k.note(ctx, &k.now.passwords.pause, errors.Join(err, k.followSecrets(ctx, accounts, sum)))
	}
}

// mendAccounts logs in as the internal accounts do, and restores them on this server if
// they are not let in, or may not do what they are for.
func (k *accountKeeper) mendAccounts(ctx context.Context) error {
	internal, wrong := k.opt.Dirs.internalAccounts()
	if wrong == nil {
		wrong = errors.Join(k.tryDoors(ctx, internal), k.findDoubles(ctx, internal))
	}
	if wrong == nil {
		return nil
	}
	k.log.Warn("internal accounts were wrong; the manager restores them", "error", wrong)
	if err := k.restore(ctx, mysql.Here); err != nil {
		return errors.Join(wrong, err)
	}
	k.now.toSpread = true
	k.by.resetConnections()
	return nil
}

// tryDoors tells what a server's own word is against; what cannot be tried is not known.
func (k *accountKeeper) tryDoors(ctx context.Context, internal mysql.Internal) error {
	ctx, cancel := context.WithTimeout(ctx, accountsLimit)
	defer cancel()
	conf, err := k.tls.client(k.opt.Peer(k.opt.Instance))
	if err != nil {
		return err
	}
	address := net.JoinHostPort(k.opt.PodIP, strconv.Itoa(k.opt.AdminPort))
	for _, err := range []error{
		mysql.CheckReplication(ctx, address, conf, internal.Replication),
		mysql.CheckManager(ctx, k.opt.Dirs.socket(), internal.Manager),
		k.tryBackup(ctx, conf, internal.Backup),
	} {
		var wrong *mysql.AccountError
		if errors.As(err, &wrong) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			k.log.Debug("cannot try to log in with an internal account", "error", err)
		}
	}
	return nil
}

// tryBackup logs in as the Job of a Backup does, where there is an account for it.
func (k *accountKeeper) tryBackup(ctx context.Context, conf *tls.Config, a mysql.Account) error {
	if a.User == "" {
		return nil
	}
	return mysql.CheckBackup(ctx, net.JoinHostPort(k.opt.PodIP, strconv.Itoa(k.opt.MySQLPort)), conf, a)
}

// findDoubles tells of accounts that are named as internal ones are, and has them dropped. What cannot be
// asked is not known.
func (k *accountKeeper) findDoubles(ctx context.Context, internal mysql.Internal) error {
	ctx, cancel := context.WithTimeout(ctx, accountsLimit)
	defer cancel()
	found, err := k.asks().Doubles(ctx, internal)
	if err != nil {
		k.log.Debug("cannot look for accounts with the names of internal accounts", "error", err)
		return nil
	}
	var wrong []error
	for _, a := range found {
		wrong = append(wrong, &mysql.AccountError{User: a.User, Err: fmt.Errorf("somebody has made %s, which locks "+
			"out instances that connect from there; the manager drops it", a)})
		if !slices.Contains(k.now.doubles, a) {
			k.now.doubles = append(k.now.doubles, a)
		}
	}
	return errors.Join(wrong...)
}

// restore makes the internal accounts what they should be, as root, or else, with what it
// may do, as the manager.
func (k *accountKeeper) restore(ctx context.Context, scope mysql.Scope) error {
	internal, err := k.opt.Dirs.internalAccounts()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, accountsLimit)
	defer cancel()
	err = k.root().Restore(ctx, internal, k.now.doubles, scope)
	if mysql.IsAccessDenied(err) {
		err = errors.Join(fmt.Errorf("root@localhost cannot do it: %w", err),
			k.asks().Restore(ctx, internal, k.now.doubles, scope))
	}
	return err
}

// internalAccounts are those of the manager, of replication and of Backups, as the Secrets have them. No slip in that
// of Backups keeps the others from being mended: secrets tells of it.
func (d Dirs) internalAccounts() (i mysql.Internal, err error) {
	if i.Manager, err = readAccount(d.Control); err != nil {
		return i, err
	}
	i.Backup, _ = d.backupAccount()
	i.Replication, err = d.replicationAccount()
	return i, err
}

func (d Dirs) rootAccounts() ([]mysql.Account, error) {
	a, err := readAccount(d.Root)
	return []mysql.Account{a}, err
}

// initFile is what mysqld executes while it starts.
func (d Dirs) initFile() string { return filepath.Join(d.Run, "accounts.sql") }

// dropInitFile removes the file of first statements, which holds passwords and was read.
func (d Dirs) dropInitFile() { _ = os.Remove(d.initFile()) }

// restoring has mysqld restore the internal accounts while it starts, before it lets
// anybody in: a server that is read-only cannot be helped otherwise. Without it mysqld
// starts all the same.
func (k *accountKeeper) restoring(c *v1alpha1.Cluster) []string {
	for name := range c.Spec.MySQL.Parameters {
		if mysql.NormalParameter(name) == "init_file" {
			return nil
		}
	}
	text, err := mysql.NewInitFile(), error(nil) // root alone, until it is made or cloned
	if k.by.dataState() == core.DataPopulated {
		var internal mysql.Internal
		internal, err = k.opt.Dirs.internalAccounts()
		text = internal.InitFile()
	}
	if err == nil {
		err = os.WriteFile(k.opt.Dirs.initFile(), []byte(text), 0o600)
	}
	if err != nil {
		k.log.Warn("cannot check the internal accounts before mysqld starts; mysqld starts all the same", "error", err)
		return nil
	}
	return []string{"--init-file=" + k.opt.Dirs.initFile()}
}

// What an accountKeeper asks of its manager.

func (m *manager) accountsLocked() bool {
	return get(m, func(s *state) bool { return s.access.locked })
}

func (m *manager) dataState() core.DataState {
	return get(m, func(s *state) core.DataState { return s.volume.data })
}

func (m *manager) keep(change func(*volumeRecord)) error { return m.record.change(change) }

// isAcknowledged reports whether a commit would not wait at this moment; false if it is not known.
// Whoever waits while it changes an account keeps everybody else from logging in, the replicas too.
func (m *manager) isAcknowledged() bool {
	return get(m, func(s *state) bool {
		if s.status.server == nil || !s.answers(m.disk.stalls()) {
			return false
		}
		return agent.MayChangeAccounts(s.status.server)
	})
}

package instance

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/mysql"
)

// secret is an account of a Secret, and from where it logs in. Those that are internal are made again where they
// are missing; another that is there again, somebody has made by hand.
type secret struct {
	account  mysql.Account
	hosts    []string
	internal bool
	// changed tells, while it is followed, whether it is another than before.
	changed bool
}

// secrets are the accounts of all Secrets that can be used, a digest of them, and why others
// cannot be.
func (d Dirs) secrets() ([]secret, string, error) {
	var out []secret
	var unusable []error
	sum := sha256.New()
	for _, s := range []struct {
		read     func() (mysql.Account, error)
		hosts    []string
		internal bool
	}{
		{d.replicationAccount, []string{"%"}, true},
		{func() (mysql.Account, error) { return readAccount(d.App) }, []string{"%"}, false},
		{func() (mysql.Account, error) { return readAccount(d.Root) }, []string{"localhost", "%"}, false},
		{d.backupAccount, []string{"%"}, true},
		// last: it is the account that does this
		{func() (mysql.Account, error) { return readAccount(d.Control) }, []string{"localhost"}, true},
	} {
		a, err := s.read()
		if err != nil {
			unusable = append(unusable, err)
			continue
		}
		if a.User == "" {
			continue // no operator has made it yet
		}
		_, _ = fmt.Fprintf(sum, "%q %q;", a.User, a.Password)
		out = append(out, secret{account: a, hosts: s.hosts, internal: s.internal})
	}
	return out, fmt.Sprintf("%x", sum.Sum(nil)), errors.Join(unusable...)
}

// passwordsKnown is what an accountKeeper knows of the Secrets' passwords, while its server takes
// writes.
type passwordsKnown struct {
	// followed is the digest of the Secrets that were followed last, seen of those that were seen
	// last, since when they are as they are.
	followed, seen string
	since          time.Time
	// pause is until they are followed again, after that has failed.
	pause pause
	// held are the passwords that Secrets here were seen to have while they were the accounts' newest.
	held map[string]string
	// tells says whether the data told of any account's Secret, when they were first asked; asked that they were.
	tells, asked bool
	// were are the passwords, by user, that all accounts had followed last.
	were map[string]string
	// waits: it was told that a password is not set yet.
	waits bool
}

// followSecrets gives accounts the passwords of their Secrets, where these have changed since a
// primary of this data followed them.
func (k *accountKeeper) followSecrets(ctx context.Context, accounts []secret, sum string) error {
	p := &k.now.passwords
	if p.seen != sum {
		p.seen, p.since = sum, time.Now()
	}
	if p.followed == sum {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, accountsLimit)
	defer cancel()
	if err := k.askWhatDataTell(ctx, accounts); err != nil {
		return err
	}
	var failed []error
	waits := false
	for _, s := range accounts {
		was, known := p.were[s.account.User]
		s.changed = known && was != s.account.Password
		for _, host := range s.hosts {
			if !k.by.isAcknowledged() {
				return errors.Join(failed...) // another was set, and meanwhile nobody acknowledges the next one
			}
			step, err := k.followSecret(ctx, &s, host)
			failed = append(failed, err)
			waits = waits || step == agent.AwaitSecret
		}
	}
	if err := errors.Join(failed...); err != nil || waits {
		return err
	}
	p.followed, p.waits = sum, false
	if p.were == nil {
		p.were = map[string]string{}
	}
	for _, s := range accounts {
		p.were[s.account.User] = s.account.Password
	}
	return k.by.keep(func(r *volumeRecord) { r.Accounts = sum })
}

// isDue reports whether Secrets with a digest are to be looked at: they were not followed, or some of them
// cannot be used, and others than before are not kept waiting.
func (p *passwordsKnown) isDue(sum string) bool { return p.seen != sum || p.pause.isOver() }

// askWhatDataTell asks once, before anything is noted, whether the data tell which Secrets accounts have followed.
// Those of an earlier release do not.
func (k *accountKeeper) askWhatDataTell(ctx context.Context, accounts []secret) error {
	p := &k.now.passwords
	for _, s := range accounts {
		for _, host := range s.hosts {
			if p.asked {
				return nil
			}
			given, _, err := k.asks().PasswordsOf(ctx, s.account.User, host)
			if err != nil {
				return err
			}
			p.tells = p.tells || len(given) > 0
		}
	}
	p.asked = true
	return nil
}

// followSecret does so for one account.
func (k *accountKeeper) followSecret(ctx context.Context, s *secret, host string) (agent.PasswordStep, error) {
	a := s.account
	given, exists, err := k.asks().PasswordsOf(ctx, a.User, host)
	if err != nil || !exists {
		return agent.KeepPassword, err
	}
	p := &k.now.passwords
	facts := agent.PasswordFacts{Recorded: len(given) > 0, Place: given.Place(a.Password),
		Agreed: k.by.kept().Accounts == p.seen, Unchanged: time.Since(p.since),
		ByHand: p.tells && !s.internal, Changed: s.changed}
	s.changed = s.changed || facts.Recorded && facts.Place != 0 // the same account from elsewhere had another
	name := a.User + "@" + host
	if held, known := p.held[name]; known {
		facts.Held = given.Place(held) == 0
	}
	step := facts.Step()
	switch step {
	case agent.KeepPassword:
		p.hold(name, a.Password)
	case agent.NotePassword:
		return step, k.asks().NotePassword(ctx, a, host, given)
	case agent.SetPassword:
		if err := k.asks().ChangePassword(ctx, a, host, given); err != nil {
			return step, err
		}
		p.hold(name, a.Password)
		k.log.Info("the account now has the password of its Secret", "account", name)
	case agent.AwaitSecret:
		if !p.waits {
			p.waits = true
			k.log.Warn("the mounted Secret has a password that the account had before the present one: this Pod's "+
				"Secret may be older than the server; unless it changes, the password is set back", "account", name,
				"after", agent.SecretPatience.String())
		}
	}
	return step, nil
}

// hold notes that a Secret has the newest password of an account.
func (p *passwordsKnown) hold(name, password string) {
	if p.held == nil {
		p.held = map[string]string{}
	}
	p.held[name] = password
}

package instance

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"cnmsql.co/internal/mysql"
)

const accountsInterval = 5 * time.Second

// keepAccounts has the primary follow the passwords in the Secrets. A change
// reaches the replicas as every write does.
func (m *manager) keepAccounts(ctx context.Context) {
	tick := time.NewTicker(accountsInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if get(m, func(s *state) int64 { return s.writable }) == 0 {
			continue
		}
		if err := m.followSecrets(ctx); err != nil && ctx.Err() == nil {
			m.log.Warn("following the Secrets' passwords; it is tried again", "error", err)
		}
	}
}

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
		ctx, cancel := context.WithTimeout(ctx, statementLimit)
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

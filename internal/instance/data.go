package instance

import (
	"context"
	"slices"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/mysql"
)

// killMysqld ends mysqld at once; that is no crash.
func (m *manager) killMysqld() error {
	proc := get(m, func(s *state) *process { return s.mysqld.proc })
	if !proc.running() {
		return nil
	}
	m.update(func(s *state) { s.mysqld.stopRequested = proc })
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return proc.kill(ctx)
}

// accounts are who the manager logs in as: on data that is being made, root, who has no
// password yet. Restored data were given the manager's account while mysqld started, and what
// they hold of root's may be locked by an attempt that fails. A password that was changed in
// the Secret may not have been changed in the server yet, and then the one that is known from
// before is right. It is so too where the Secret holds no account any more: a slip in it must not
// have a server that runs look as if it did not answer.
func (m *manager) accounts() ([]mysql.Account, error) {
	now, err := readAccount(m.opt.Dirs.Control)
	m.mu.Lock()
	defer m.mu.Unlock()
	if former := m.st.access.former; err != nil && len(former) > 0 && m.st.volume.data == core.DataPopulated {
		return slices.Clone(former), nil
	}
	if err != nil {
		return nil, err
	}
	if m.activities.current() == agent.Restoring {
		return []mysql.Account{now}, nil
	}
	if m.st.volume.data != core.DataPopulated {
		return []mysql.Account{{User: "root"}, now}, nil
	}
	out := []mysql.Account{now}
	for _, a := range m.st.access.former {
		if a != now {
			out = append(out, a)
		}
	}
	m.st.access.former = out[:min(len(out), 3)]
	return out, nil
}

// resetConnections closes the connections that nobody uses: those that are open were made with
// another account, and would be taken for a user's.
func (m *manager) resetConnections() {
	for _, s := range []*mysql.Server{m.pulse, m.health, m.roles, m.metrics} {
		s.Reset()
	}
}

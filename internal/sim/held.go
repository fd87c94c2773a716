package sim

import (
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// askHeld asks others what they hold, all at once. Each answer counts as it comes.
func (m *manager) askHeld(a agent.AskHeld) {
	m.elsewhere = m.elsewhere.Asks(a, m.moment(m.w.now))
	left := len(a.Instances)
	ended := func() {
		if left--; left == 0 && !m.dead {
			m.elsewhere = m.elsewhere.Ends(m.moment(m.w.now))
			m.update()
		}
	}
	for _, name := range a.Instances {
		m.askOneHeld(name, ended)
	}
}

// askOneHeld asks one; ended is called when it has answered, or had its time.
func (m *manager) askOneHeld(name string, ended func()) {
	asked, peer, over := m.moment(m.w.now), m.w.managerOf(name), false
	m.at(agent.HeldLimit, func() {
		if !over {
			over = true
			m.unheard[name] = true
			ended()
		}
	})
	if peer == nil {
		return
	}
	m.w.sendAfter(m.w.steadyDelay(m.machine, peer.machine), m.machine, peer.machine, func() {
		if peer.dead {
			return
		}
		peer.poll()
		fresh, r := peer.serverAt == m.w.now, peer.report()
		if !fresh {
			r.Server = nil
		}
		m.w.sendAfter(m.w.steadyDelay(peer.machine, m.machine), peer.machine, m.machine, func() {
			if !over && !m.dead {
				over = true
				delete(m.unheard, name)
				m.hearHeld(name, r, asked)
				ended()
			}
		})
	})
}

func (m *manager) hearHeld(name string, r core.Report, asked time.Time) {
	if h, says := agent.HeldBy(r, asked); says && h.Instance == name {
		m.elsewhere = m.elsewhere.Says(h)
		m.update()
	}
}

// steadyDelay draws nothing, so that what else happens in a run does not depend on it.
func (w *world) steadyDelay(from, to int) time.Duration {
	return 4*minDelay + w.link(from, to).slow
}

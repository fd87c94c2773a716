package instance

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/mysql"
)

// member is an instance of a group. Who is primary is the group's to say.
type member struct{ m *manager }

func (member) status(ctx context.Context, server *mysql.Server) (*core.Server, error) {
	return server.MemberStatus(ctx)
}

// noteRole: the group itself opens and closes its members for writes.
func (t member) noteRole(server *core.Server) {
	s := &t.m.st
	s.mayWrite, s.writable = !server.SuperReadOnly, 0
	if g := server.Group; s.mayWrite && g.State == core.MemberOnline && g.Role == core.MemberPrimary {
		s.writable = max(1, s.seen)
	}
}

func (t member) withhold(context.Context) error {
	// The next decision leaves the group, and the operator sees that it has.
	poke(t.m.wake)
	return nil
}

func (member) notReady(_ *readiness, f *agent.Facts, _ agent.Decision) string {
	if f.Server.Group == nil || f.Server.Group.State != core.MemberOnline {
		return "it is not online in the group"
	}
	return ""
}

func (t member) groupConfig(c *v1alpha1.Cluster) *mysql.GroupConfig {
	spec := c.Spec.Replication.GroupReplication
	if spec == nil {
		spec = &v1alpha1.GroupReplicationSpec{}
	}
	out := &mysql.GroupConfig{
		LocalAddress:    t.m.opt.GroupLocal,
		Consistency:     cmp.Or(spec.Consistency, "BEFORE_ON_PRIMARY_FAILOVER"),
		ExitStateAction: cmp.Or(spec.ExitStateAction, "READ_ONLY"),
		AutoRejoinTries: int(orElse(spec.AutoRejoinTries, 3)),
		ExpelTimeout:    int(orElse(spec.MemberExpelTimeoutSeconds, 0)),
		MajorityTimeout: int(orElse(spec.UnreachableMajorityTimeoutSeconds, 0)),
	}
	if g := c.Status.GroupReplication; g != nil {
		out.Name = g.GroupName
	}
	return out
}

func orElse[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// membershipOf takes from a Cluster what a member needs to know of its group; nil
// where there is none.
func membershipOf(c *v1alpha1.Cluster) *agent.Membership {
	if !isGroup(c) {
		return nil
	}
	out := &agent.Membership{Bootstrapper: c.Status.TargetPrimary}
	if g := c.Status.GroupReplication; g != nil {
		out.Name, out.Bootstrapped = g.GroupName, g.Bootstrapped
		for _, m := range g.Members {
			if m.Address != "" {
				out.Addresses = append(out.Addresses, m.Address)
			}
		}
	}
	return out
}

// memberState is what the manager of a member knows besides; guarded by its mutex.
type memberState struct {
	rebootEpoch int64
	triedAt     time.Time
	failed      string
	settled     core.MemberRole
	protocolOf  string
	admitted    string
	handingOver bool
}

// groupLimit bounds joining, which takes as long as seeds that are away need to be
// given up.
const groupLimit = 2 * time.Minute

// bootstrapGroup makes the group. What the Cluster says is read anew: what was
// heard of it may be of before the group was made.
func (m *manager) bootstrapGroup(ctx context.Context, a agent.BootstrapGroup) error {
	c, err := m.kube.Cluster(ctx)
	if err != nil {
		return fmt.Errorf("making the group: %w", err)
	}
	m.setCluster(c)
	d := agent.Decide(m.facts())
	if len(d.Actions) != 1 || d.Actions[0] != agent.Action(a) {
		return errors.New("making the group: the Cluster says something else by now")
	}
	return m.startGroup(true)
}

// startGroup joins the group, or makes it.
func (m *manager) startGroup(bootstrap bool) error {
	account, err := readAccount(m.opt.Dirs.Replication)
	if err != nil {
		return err
	}
	m.update(func(s *state) { s.member.triedAt, s.member.failed = time.Now(), "" })
	seeds := m.seeds()
	return m.begin(agent.Joining, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, groupLimit)
		defer cancel()
		err := m.roles.JoinGroup(ctx, seeds, account, bootstrap)
		m.update(func(s *state) {
			s.member.triedAt = time.Now()
			if err != nil {
				s.member.failed = err.Error()
			} else {
				s.member.rebootEpoch = 0 // carried out: who leaves this group later joins again
			}
		})
		if err != nil {
			m.log.Warn("could not join the group", "bootstrap", bootstrap, "error", err)
		}
		m.poll(ctx)
		return nil
	})
}

// rememberGroup: this data is of a group that the operator knows of. From then on it
// never makes one by itself, whatever a Cluster says whose status was lost.
func (m *manager) rememberGroup(name string) error {
	return m.memory.change(func(r *remembered) { r.GroupOf = name })
}

// seeds are the addresses of the others, whoever of them is there.
func (m *manager) seeds() []string {
	var out []string
	for _, name := range get(m, func(s *state) []string { return s.view.Names }) {
		if name != m.opt.Instance {
			out = append(out, m.opt.GroupAddress(name))
		}
	}
	return out
}

// leaveGroup ends the membership, and the sessions that were opened in it.
func (m *manager) leaveGroup() error {
	return m.begin(agent.Leaving, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, groupLimit)
		defer cancel()
		began := time.Now()
		if err := m.roles.LeaveGroup(ctx); err != nil {
			m.log.Error("leaving the group; it is tried again", "error", err)
			m.poll(ctx)
			return nil
		}
		m.update(func(s *state) { s.member.settled, s.member.triedAt = "", time.Now() })
		err := m.closeSessions(ctx)
		m.log.Info("has left the group", "after", time.Since(began).String(), "sessions", err)
		m.poll(ctx)
		return nil
	})
}

// settleRole closes the sessions that were opened in another role.
func (m *manager) settleRole(ctx context.Context, role core.MemberRole) error {
	if err := m.closeSessions(ctx); err != nil {
		return err
	}
	m.log.Info("role in the group", "role", role)
	m.update(func(s *state) { s.member.settled = role })
	return nil
}

func (m *manager) admitMembers(ctx context.Context, addresses string) error {
	if err := m.roles.AdmitMembers(ctx, addresses); err != nil {
		return err
	}
	m.update(func(s *state) { s.member.admitted = addresses })
	return nil
}

func (m *manager) raiseProtocol(ctx context.Context, version string) error {
	raised, err := m.roles.RaiseProtocol(ctx, version)
	if err != nil {
		return err
	}
	if raised {
		m.log.Info("the group speaks a newer protocol", "of", version)
	}
	m.update(func(s *state) { s.member.protocolOf = version })
	return nil
}

// orderGroupPrimary asks the group for another primary. It goes on when the caller
// has gone: long transactions are waited for.
func (m *manager) orderGroupPrimary(uuid string) error {
	m.mu.Lock()
	busy := m.st.member.handingOver
	m.st.member.handingOver = true
	m.mu.Unlock()
	if busy {
		return nil
	}
	limit := get(m, func(s *state) time.Duration {
		return time.Duration(cmp.Or(s.cluster.Spec.MaxSwitchoverDelay, 3600)) * time.Second
	})
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		err := m.metrics.SetGroupPrimary(ctx, uuid)
		if err != nil {
			m.log.Warn("asking the group for another primary", "error", err)
		}
		m.update(func(s *state) { s.member.handingOver = false })
		m.poll(ctx)
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			return refusal("GroupRefused", "%v", err)
		}
	case <-time.After(time.Second):
	}
	return nil
}

// orderForceMembers goes on with the named members alone. The addresses of others in
// the group are those that their names have now; DNS may be as lost as they are, so
// that the own one is not asked for.
func (m *manager) orderForceMembers(ctx context.Context, members []string) error {
	if v := m.facts().Server; v == nil || v.Group == nil || v.Group.State != core.MemberOnline || v.Group.HasQuorum() {
		return refusal("NotASurvivor", "this instance is not an online member of a group that lost its quorum")
	}
	var addresses []string
	for _, name := range members {
		address := m.opt.GroupLocal
		if name != m.opt.Instance {
			var err error
			if address, err = resolved(ctx, m.opt.GroupAddress(name)); err != nil {
				return fmt.Errorf("finding the address of %s: %w", name, err)
			}
		}
		addresses = append(addresses, address)
	}
	ctx, cancel := context.WithTimeout(ctx, 9*time.Second)
	defer cancel()
	return m.roles.ForceMembers(ctx, addresses)
}

func resolved(ctx context.Context, address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	ips, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(ips[0].IP.String(), port), nil
}

// orderReboot has this instance make the group anew, when it is in none.
func (m *manager) orderReboot(o control.Order) error {
	if v := m.facts().Server; v == nil || v.Group == nil || v.Group.State == core.MemberOnline && v.Group.HasQuorum() {
		return refusal("InGroup", "this instance is online in a group that has its quorum, or cannot be asked")
	}
	m.update(func(s *state) { s.member.rebootEpoch = o.Epoch })
	return nil
}

// keepRinging wakes the operator by an annotation of the own Pod whenever the group
// is seen to change. It is a doorbell: what is true the operator asks all members.
func (m *manager) keepRinging(ctx context.Context) {
	last := ""
	for {
		s, changed := m.snapshot(time.Now())
		if now := chime(s.Report); now != "" && now != last {
			if err := m.kube.RingDoorbell(ctx, m.opt.Instance, now); err != nil && ctx.Err() == nil {
				m.log.Warn("ringing the operator's doorbell", "error", err)
			}
			last = now
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// chime differs whenever the group does; "" where there is none.
func chime(r core.Report) string {
	if r.Server == nil || r.Server.Group == nil {
		return ""
	}
	v := *r.Server.Group
	sum := sha256.Sum256([]byte(fmt.Sprint(v.State, v.Role, v.ViewID, v.Members)))
	return strconv.FormatUint(uint64(sum[0])<<24|uint64(sum[1])<<16|uint64(sum[2])<<8|uint64(sum[3]), 16)
}

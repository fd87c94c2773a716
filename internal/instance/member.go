package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/mysql"
	"cnmsql.co/internal/observation"
)

// member is an instance of a group. Who is primary is the group's to say.
type member struct{ m *manager }

func (member) status(ctx context.Context, server *mysql.Server) (*core.Server, error) {
	return server.MemberStatus(ctx)
}

// noteRole: the group itself opens and closes its members for writes.
func (t member) noteRole(server *core.Server) {
	s := &t.m.st
	if !s.mysqld.stopsWrites {
		s.mysqld.mayWrite, s.mysqld.writable = !server.SuperReadOnly, agent.MemberWrites(server, s.cluster.seen)
	}
	s.member.noteClosed(agent.IsClosed(server))
	s.member.noteQuorum(server.Group != nil && server.Group.IsQuorate())
}

func (t member) receiveNothing(context.Context) error {
	// The next decision leaves the group, and the operator sees that it has.
	poke(t.m.wake)
	return nil
}

// refuseClients: a member that leaves commits nothing of its own any more, and settles
// its role when it comes back.
func (member) refuseClients(context.Context) error { return nil }

func (member) notReady(_ *agent.Readiness, f *agent.Facts, _ agent.Decision) string {
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
func membershipOf(c *v1alpha1.Cluster, me string) (*agent.Membership, error) {
	if !isGroup(c) {
		return nil, nil
	}
	out := &agent.Membership{Bootstrapper: c.Status.TargetPrimary}
	g := c.Status.GroupReplication
	if g == nil {
		return out, nil
	}
	out.Name, out.Bootstrapped = g.GroupName, g.Bootstrapped
	excluded, err := excludedIn(g)
	if err != nil {
		return nil, err
	}
	if out.Recoveries, err = observation.Recoveries(g); err != nil {
		return nil, err
	}
	out.Undecided = observation.IsUndecided(g)
	out.Held, out.Excluded = excluded[me]
	out.GoneOn = g.HasQuorum && slices.ContainsFunc(g.Members, func(m v1alpha1.GroupMember) bool {
		return m.Instance == me && m.State == string(core.MemberUnknown)
	})
	for _, m := range g.Members {
		if _, is := excluded[m.Instance]; m.Address != "" && !is {
			out.Addresses = append(out.Addresses, m.Address)
		}
	}
	delete(excluded, me)
	out.ExcludedOthers = slices.Sorted(maps.Keys(excluded))
	return out, nil
}

// excludedIn are those whom the group went on without and who were not admitted since, and
// what those held who went on.
func excludedIn(g *v1alpha1.GroupReplicationStatus) (map[string]gtid.Set, error) {
	out := map[string]gtid.Set{}
	for _, l := range g.LeftOut {
		held, err := gtid.Parse(l.Held)
		if err != nil {
			return nil, fmt.Errorf("status.groupReplication.leftOut[%s].held: %w", l.Instance, err)
		}
		if !l.Admitted {
			out[l.Instance] = held
		}
	}
	return out, nil
}

// memberState is what the manager of a member knows besides. What group the data are of, the
// volume remembers.
type memberState struct {
	agent.MemberFacts
}

// of is what is known of a member of a group.
func (s *memberState) of(group string) agent.MemberFacts {
	f := s.MemberFacts
	f.Of = group
	return f
}

// serverEnded: what mysqld had been told, the next one has not been. again says whether an
// order to make the group may be carried out by the next.
func (s *memberState) serverEnded(again bool) {
	s.Settled, s.ProtocolOf, s.Admitted = "", "", ""
	s.RejoinHeld, s.ExpelHeld = false, false
	if !again {
		s.RebootEpoch = 0
	}
}

// noteQuorum notes since when this member has had a majority in its view.
func (s *memberState) noteQuorum(quorate bool) {
	switch {
	case !quorate:
		s.QuorateSince = time.Time{}
	case s.QuorateSince.IsZero():
		s.QuorateSince = time.Now()
	}
}

// left is what a replacement binary is told.
func (s *memberState) left() handoverMember {
	return handoverMember{RebootEpoch: s.RebootEpoch, Settled: s.Settled, ProtocolOf: s.ProtocolOf,
		Admitted: s.Admitted, AdmittedEpoch: s.AdmittedEpoch, RejoinHeld: s.RejoinHeld}
}

// inherit is the reverse of left.
func (s *memberState) inherit(l handoverMember) {
	s.MemberFacts = agent.MemberFacts{RebootEpoch: l.RebootEpoch, Settled: l.Settled, ProtocolOf: l.ProtocolOf,
		Admitted: l.Admitted, AdmittedEpoch: l.AdmittedEpoch, RejoinHeld: l.RejoinHeld}
}

// groupLimit bounds joining, which takes as long as seeds that are away need to be
// given up.
const groupLimit = 2 * time.Minute

// bootstrapGroup makes the group. What the Cluster says is read again: what was
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
	if err := m.provenance.receives(); err != nil { // a member receives from the moment it joins
		return err
	}
	m.update(func(s *state) { s.member.TriedAt, s.member.Failed = time.Now(), "" })
	seeds := m.seeds()
	what := agent.Joining
	if bootstrap {
		what = agent.Bootstrapping
	}
	return m.activities.begin(what, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, groupLimit)
		defer cancel()
		err := m.roles.JoinGroup(ctx, seeds, account, bootstrap)
		m.update(func(s *state) {
			s.member.TriedAt = time.Now()
			if err != nil {
				s.member.Failed = err.Error()
			} else {
				s.member.RebootEpoch = 0 // carried out: who leaves this group later joins again
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
	return m.record.change(func(r *volumeRecord) { r.GroupOf = name })
}

// seeds are the addresses of the others, whoever of them is there. Those whom the group
// went on without may be in another.
func (m *manager) seeds() []string {
	var out []string
	v := get(m, func(s *state) *agent.Cluster { return s.cluster.view })
	for _, name := range v.Names {
		if name != m.opt.Instance && !slices.Contains(v.Group.ExcludedOthers, name) {
			out = append(out, m.opt.GroupAddress(name))
		}
	}
	return out
}

// leaveGroup ends the membership, and the sessions that were opened in it.
func (m *manager) leaveGroup(within time.Duration) error {
	return m.activities.begin(agent.Leaving, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, cmp.Or(within, groupLimit))
		defer cancel()
		began := time.Now()
		if err := m.roles.LeaveGroup(ctx); err != nil {
			if within > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded) {
				m.log.Error("mysqld does not leave the group, and is killed", "after", within.String(), "error", err)
				return m.killMysqld()
			}
			m.log.Error("leaving the group; it is tried again", "error", err)
			m.poll(ctx)
			return nil
		}
		m.update(func(s *state) { s.member.Settled, s.member.TriedAt = "", time.Now() })
		err := m.sessions.closeAll(ctx)
		m.log.Info("has left the group", "after", time.Since(began).String(), "sessions", err)
		m.poll(ctx)
		return nil
	})
}

// settleRole closes the sessions that were opened in another role, and lets clients in
// again whom mysqld kept out when it lost the group (exitStateAction OFFLINE_MODE).
func (m *manager) settleRole(ctx context.Context, role core.MemberRole) error {
	if err := m.sessions.closeAll(ctx); err != nil {
		return err
	}
	if err := m.roles.AcceptClients(ctx); err != nil {
		return err
	}
	m.log.Info("role in the group", "role", role)
	m.update(func(s *state) { s.member.Settled = role })
	return nil
}

func (m *manager) admitMembers(ctx context.Context, addresses string) error {
	if err := m.roles.AdmitMembers(ctx, addresses); err != nil {
		return err
	}
	m.update(func(s *state) { s.member.Admitted, s.member.AdmittedEpoch = addresses, 0 })
	return nil
}

// holdRejoin takes mysqld its own attempts to come back, or gives them back.
func (m *manager) holdRejoin(ctx context.Context, on bool) error {
	tries := 0
	if !on {
		tries = member{m}.groupConfig(get(m, func(s *state) *v1alpha1.Cluster {
			return s.cluster.object
		})).AutoRejoinTries
	}
	if err := m.roles.SetRejoinTries(ctx, tries); err != nil {
		return err
	}
	m.update(func(s *state) { s.member.RejoinHeld = on })
	return nil
}

// holdExpulsion has mysqld wait for members that it does not reach, for as long as it can be
// told to, or as the Cluster says.
func (m *manager) holdExpulsion(ctx context.Context, on bool) error {
	const longest = 3600 // seconds; the server takes no more
	seconds := longest
	if !on {
		seconds = member{m}.groupConfig(get(m, func(s *state) *v1alpha1.Cluster {
			return s.cluster.object
		})).ExpelTimeout
	}
	if err := m.roles.SetExpelTimeout(ctx, seconds); err != nil {
		return err
	}
	m.update(func(s *state) { s.member.ExpelHeld = on })
	return nil
}

// forgetFormer spares whoever joins next from looking for members that are gone. The group
// does without: that it fails is told, and it is done for the next view.
func (m *manager) forgetFormer(ctx context.Context, view string) error {
	limited, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	err := m.roles.ForgetFormerMembers(limited)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		m.log.Warn(
			"the group remembers former members: whoever joins may look for them, and hold up the group meanwhile",
			"error", err)
	}
	m.update(func(s *state) { s.member.Forgot = view })
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
	m.update(func(s *state) { s.member.ProtocolOf = version })
	return nil
}

// orderForceMembers goes on with the named members alone. The addresses of others in
// the group are those that their names have now; DNS may be as lost as they are, so
// that the own one is not asked for. From now on nobody else is admitted: whoever is left
// out must not come back by itself.
func (m *manager) orderForceMembers(ctx context.Context, o control.Order) error {
	if v := m.facts().Server; v == nil || v.Group == nil || !v.Group.IsSurvivor() {
		return refusal(core.OrderNotASurvivor, "this instance is not an online member of a group that lost its quorum")
	} else if o.View != "" && v.Group.ViewID != o.View { // an earlier operator names none
		return refusal(core.RefusalViewChanged, "the group is in view %s, and was to be forced in view %s",
			v.Group.ViewID, o.View)
	}
	var addresses []string
	for _, name := range o.Members {
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
	if err := m.admitAlone(ctx, addresses, o.Epoch); err != nil {
		return err
	}
	return m.roles.ForceMembers(ctx, addresses)
}

// admitAlone admits these members and nobody else, until the Cluster of that epoch says
// whom.
func (m *manager) admitAlone(ctx context.Context, members []string, epoch int64) error {
	var hosts []string
	for _, address := range members {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return err
		}
		hosts = append(hosts, host)
	}
	admitted := strings.Join(hosts, ",")
	if err := m.roles.AdmitMembers(ctx, admitted); err != nil {
		return err
	}
	m.update(func(s *state) {
		s.member.Admitted, s.member.AdmittedEpoch = admitted, epoch
		s.cluster.seen = max(s.cluster.seen, epoch) // for those who ask, and know only of an earlier one
	})
	return nil
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

// orderReboot has this instance reboot the group, when it is in none.
func (m *manager) orderReboot(o control.Order) error {
	if v := m.facts().Server; v == nil || v.Group == nil || v.Group.IsQuorate() {
		return refusal(core.OrderInGroup, "this instance is online in a group that has its quorum, or cannot be asked")
	}
	m.update(func(s *state) { s.member.RebootEpoch = o.Epoch })
	return nil
}

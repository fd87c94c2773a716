package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/declared"
	"cnmsql.co/internal/mysql"
)

// membership is this instance in its group: it joins, leaves and settles there as was decided, and
// carries out what is ordered of the group. It keeps what the manager of a member knows besides.
type membership struct {
	opt        Options
	log        *slog.Logger
	activities *activities
	sessions   *sessions
	provenance *provenance
	by         grouped
	// record is what stands on the volume; roles is mysqld, and metrics too, for what takes long.
	record         func() *recordFile
	roles, metrics func() *mysql.Server

	mu sync.Mutex
	st memberState
}

// grouped is what a membership asks of its manager.
type grouped interface {
	facts() *agent.Facts
	// object is the Cluster; nil before it is known. reread reads it from the API server, and goes by it unless a
	// newer view came meanwhile, and noteEpoch takes note of an epoch.
	object() *v1alpha1.Cluster
	reread(ctx context.Context) (c *v1alpha1.Cluster, taken bool, err error)
	noteEpoch(epoch int64)
	// poll asks mysqld how it is, and killMysqld ends it; that is no crash.
	poll(ctx context.Context)
	killMysqld() error
	// retell has the report made again, and the worker look.
	retell()
}

func newMembership(m *manager, c concerns) *membership {
	return &membership{opt: m.opt, log: m.log, activities: c.activities, sessions: c.sessions,
		provenance: c.provenance, by: m,
		record: func() *recordFile { return m.record },
		roles:  func() *mysql.Server { return m.roles }, metrics: func() *mysql.Server { return m.metrics }}
}

// change changes what it keeps, and has that told.
func (g *membership) change(f func(*memberState)) {
	g.mu.Lock()
	f(&g.st)
	g.mu.Unlock()
	g.by.retell()
}

// known is what it knows besides what stands on the volume.
func (g *membership) known() agent.MemberFacts {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.st.MemberFacts
}

// noteSeen takes note of what mysqld says of its group.
func (g *membership) noteSeen(server *core.Server) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.st.See(server, time.Now())
	if server.HasView() && server.Group.State == core.MemberOnline {
		server.Group.Certificates = g.st.certificates
	}
}

// serverEnded forgets what mysqld had been told, for the next one has not been. again says whether
// an order to make the group may be carried out by the next.
func (g *membership) serverEnded(again bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.st.serverEnded(again)
}

// left is what a replacement binary is told, and inherit the reverse.
func (g *membership) left() handoverMember {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.st.left()
}

func (g *membership) inherit(l handoverMember) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.st.inherit(l)
}

// groupConfig is what the spec says of a group, as my.cnf has it.
func (g *membership) groupConfig(c *v1alpha1.Cluster) *mysql.GroupConfig {
	spec := declared.Group(&c.Spec)
	out := &mysql.GroupConfig{
		LocalAddress:    g.opt.GroupLocal,
		Consistency:     spec.Consistency,
		ExitStateAction: spec.ExitStateAction,
		AutoRejoinTries: int(*spec.AutoRejoinTries),
		ExpelTimeout:    int(*spec.MemberExpelTimeoutSeconds),
		MajorityTimeout: int(*spec.UnreachableMajorityTimeoutSeconds),
	}
	if g := c.Status.GroupReplication; g != nil {
		out.Name = g.GroupName
	}
	return out
}

// groupLimit bounds joining, which takes as long as seeds that are away need to be
// given up.
const groupLimit = 2 * time.Minute

// bootstrapGroup makes the group. What the Cluster says is read again: what was
// heard of it may be of before the group was made.
func (g *membership) bootstrapGroup(ctx context.Context, a agent.BootstrapGroup) error {
	_, taken, err := g.by.reread(ctx)
	if err == nil && !taken {
		err = errors.New("the Cluster changed while it was read")
	}
	if err != nil {
		return fmt.Errorf("making the group: %w", err)
	}
	d := agent.Decide(g.by.facts())
	if len(d.Actions) != 1 || d.Actions[0] != agent.Action(a) {
		return errors.New("making the group: the Cluster says something else by now")
	}
	if a.Reboot {
		if err := g.goOn(g.by.facts().Cluster.Epoch); err != nil {
			return err
		}
	}
	return g.startGroup(true)
}

// startGroup joins the group, or makes it.
func (g *membership) startGroup(bootstrap bool) error {
	account, err := g.opt.Dirs.replicationAccount()
	if err != nil {
		return err
	}
	if err := g.provenance.receives(); err != nil { // a member receives from the moment it joins
		return err
	}
	g.change(func(s *memberState) { s.TriedAt, s.Bootstraps = time.Now(), bootstrap })
	g.noteJoining()
	seeds := g.seeds()
	what := agent.Joining
	if bootstrap {
		what = agent.Bootstrapping
	}
	return g.activities.begin(what, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, groupLimit)
		defer cancel()
		err := g.roles().JoinGroup(ctx, seeds, account, bootstrap)
		if off := g.endBootstrap(ctx); off != nil {
			g.log.Error("cannot set group_replication_bootstrap_group back to OFF; the manager tries again",
				"error", off)
		}
		g.change(func(s *memberState) { s.noteTried(ctx, err) })
		if err != nil {
			g.log.Warn("this member cannot join the group, or make it", "bootstrap", bootstrap, "error", err)
		}
		g.by.poll(ctx)
		return nil
	})
}

// endBootstrap has mysqld make no group any more, if it was told to make one.
func (g *membership) endBootstrap(ctx context.Context) error {
	if !g.known().Bootstraps {
		return nil
	}
	if err := g.roles().EndBootstrap(ctx); err != nil {
		return err
	}
	g.change(func(s *memberState) { s.Bootstraps = false })
	return nil
}

// rememberGroup records that this data is of a group that the operator knows of. From then on it
// never makes one by itself, whatever a Cluster says whose status was lost.
func (g *membership) rememberGroup(of core.Lineage) error {
	if err := g.record().change(func(r *volumeRecord) { r.setLineage(of) }); err != nil {
		return err
	}
	g.change(func(s *memberState) { s.Remembered() })
	return nil
}

// goOn records, before it comes to that, that the group goes on from this data without others, whose data are of
// an earlier history from then on.
func (g *membership) goOn(epoch int64) error {
	return g.record().change(func(r *volumeRecord) {
		r.GroupRecovery, r.GroupDoubted = max(r.GroupRecovery, epoch), false
	})
}

// seeds are the addresses of the others, whoever of them is there. Those whom the group
// went on without may be in another.
func (g *membership) seeds() []string {
	var out []string
	v := g.by.facts().Cluster
	for _, name := range v.Names {
		if name != g.opt.Instance && !slices.Contains(v.Group.ExcludedOthers, name) {
			out = append(out, g.opt.GroupAddress(name))
		}
	}
	return out
}

// leaveGroup ends the membership, and the sessions that were opened in it.
func (g *membership) leaveGroup(a agent.LeaveGroup) error {
	return g.activities.begin(agent.Leaving, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, cmp.Or(a.Within, groupLimit))
		defer cancel()
		began := time.Now()
		if err := g.roles().LeaveGroup(ctx); err != nil {
			if a.Within > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded) {
				g.log.Error("mysqld did not leave the group in time; the manager kills it",
					"after", a.Within.String(), "error", err)
				return g.by.killMysqld()
			}
			g.log.Error("this member cannot leave the group; the manager tries again", "error", err)
			g.by.poll(ctx)
			return nil
		}
		g.change(func(s *memberState) { s.Left(a.Returns, time.Now()) })
		err := g.sessions.closeAll(ctx)
		g.log.Info("this member has left the group", "after", time.Since(began).String(), "sessions", err)
		g.by.poll(ctx)
		return nil
	})
}

// settleRole closes the sessions that were opened in another role, and lets clients in
// again whom mysqld kept out when it lost the group (exitStateAction OFFLINE_MODE).
func (g *membership) settleRole(ctx context.Context, role core.MemberRole) error {
	if err := g.sessions.closeAll(ctx); err != nil {
		return err
	}
	if err := g.roles().AcceptClients(ctx); err != nil {
		return err
	}
	g.log.Info("this member has another role in the group; it closed all sessions", "role", role)
	g.change(func(s *memberState) { s.Settled = role })
	return nil
}

func (g *membership) admitMembers(ctx context.Context, addresses string) error {
	if err := g.roles().AdmitMembers(ctx, addresses); err != nil {
		return err
	}
	g.change(func(s *memberState) { s.Admitted, s.AdmittedEpoch = addresses, 0 })
	return nil
}

// holdRejoin takes mysqld its own attempts to come back, or gives them back.
func (g *membership) holdRejoin(ctx context.Context, on bool) error {
	tries := 0
	if !on {
		tries = g.groupConfig(g.by.object()).AutoRejoinTries
	}
	if err := g.roles().SetRejoinTries(ctx, tries); err != nil {
		return err
	}
	g.change(func(s *memberState) { s.RejoinHeld = on })
	return nil
}

// holdExpulsion has mysqld wait for members that it does not reach, for as long as it can be
// told to, or as the Cluster says.
func (g *membership) holdExpulsion(ctx context.Context, on bool) error {
	const longest = 3600 // seconds; the server takes no more
	seconds := longest
	if !on {
		seconds = g.groupConfig(g.by.object()).ExpelTimeout
	}
	if err := g.roles().SetExpelTimeout(ctx, seconds); err != nil {
		return err
	}
	g.change(func(s *memberState) { s.ExpelHeld = on })
	return nil
}

// forgetFormer spares whoever joins next from looking for members that are gone. The group
// does without: that it fails is told, and it is done for the next view.
func (g *membership) forgetFormer(ctx context.Context, view string) error {
	limited, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	err := g.roles().ForgetFormerMembers(limited)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		g.log.Warn(
			"the group remembers former members: whoever joins may look for them, and hold up the group meanwhile",
			"error", err)
	}
	g.change(func(s *memberState) { s.Forgot = view })
	return nil
}

func (g *membership) raiseProtocol(ctx context.Context, version string) error {
	raised, err := g.roles().RaiseProtocol(ctx, version)
	if err != nil {
		return err
	}
	if raised {
		g.log.Info("the group speaks a newer protocol", "version", version)
	}
	g.change(func(s *memberState) { s.ProtocolOf = version })
	return nil
}

// orderForceMembers goes on with the named members alone. The addresses of others in
// the group are those that their names have now; DNS may be as lost as they are, so
// that the own one is not asked for. From now on nobody else is admitted: whoever is left
// out must not come back by itself.
func (g *membership) orderForceMembers(ctx context.Context, o control.ForceMembers) error {
	if v := g.by.facts().Server; !v.HasView() || !v.Group.IsSurvivor() {
		return refusal(core.OrderNotASurvivor, "this instance is not an online member of a group that lost its quorum")
	} else if o.View != "" && v.Group.ViewID != o.View { // an earlier operator names none
		return refusal(core.RefusalViewChanged, "the group is in view %s, and was to be forced in view %s",
			v.Group.ViewID, o.View)
	}
	var addresses []string
	for _, name := range o.Members {
		address := g.opt.GroupLocal
		if name != g.opt.Instance {
			var err error
			if address, err = resolved(ctx, g.opt.GroupAddress(name)); err != nil {
				return fmt.Errorf("finding the address of %s: %w", name, err)
			}
		}
		addresses = append(addresses, address)
	}
	ctx, cancel := context.WithTimeout(ctx, 9*time.Second)
	defer cancel()
	if err := g.admitAlone(ctx, addresses, o.Epoch); err != nil {
		return err
	}
	if err := g.goOn(o.Epoch); err != nil {
		return err
	}
	return g.roles().ForceMembers(ctx, addresses)
}

// admitAlone admits these members and nobody else, until the Cluster of that epoch says
// whom.
func (g *membership) admitAlone(ctx context.Context, members []string, epoch int64) error {
	var hosts []string
	for _, address := range members {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return err
		}
		hosts = append(hosts, host)
	}
	admitted := strings.Join(hosts, ",")
	if err := g.roles().AdmitMembers(ctx, admitted); err != nil {
		return err
	}
	g.change(func(s *memberState) { s.Admitted, s.AdmittedEpoch = admitted, epoch })
	g.by.noteEpoch(epoch) // for those who ask, and know only of an earlier one
	return nil
}

// orderReboot has this instance reboot the group, when it is in none. If it is in one by now, and mysqld
// has only not been asked since, noteSeen takes that back.
func (g *membership) orderReboot(epoch int64) error {
	if no := g.by.facts().RefusesReboot(); no != nil {
		return refusal(no.Reason, "%s", no.Message)
	}
	g.change(func(s *memberState) { s.TakeReboot(epoch) })
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

// What a membership asks of its manager, besides.

func (m *manager) noteEpoch(epoch int64) {
	m.update(func(s *state) { s.cluster.seen = max(s.cluster.seen, epoch) })
}

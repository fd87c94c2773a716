package instance

import (
	"context"
	"errors"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/mysql"
	"cnmsql.co/internal/pki"
)

// member is an instance of a group. Who is primary is the group's to say.
type member struct{ m *manager }

func (member) status(ctx context.Context, server *mysql.Server) (*core.Server, error) {
	return server.MemberStatus(ctx)
}

// noteRole notes whether mysqld takes writes, unless this manager is making it read-only, and what
// it says of its group: the group itself opens and closes its members for writes.
func (t member) noteRole(server *core.Server) {
	s := &t.m.st
	if !s.mysqld.stopsWrites {
		s.mysqld.mayWrite, s.mysqld.writable = !server.SuperReadOnly, agent.MemberWrites(server, s.cluster.seen)
	}
	t.m.membership.noteSeen(server)
}

func (t member) receiveNothing(context.Context) error {
	// The next decision leaves the group, and the operator sees that it has.
	poke(t.m.wake)
	return nil
}

// refuseClients does nothing: a member that leaves commits nothing of its own any more, and settles
// its role when it comes back.
func (member) refuseClients(context.Context) error { return nil }

func (member) notReady(_ *agent.Readiness, f *agent.Facts, _ agent.Decision) string {
	if f.Server.View().State != core.MemberOnline {
		return "it is not online in the group"
	}
	return ""
}

func (t member) groupConfig(c *v1alpha1.Cluster) *mysql.GroupConfig {
	return t.m.membership.groupConfig(c)
}

// memberState is what the manager of a member knows besides. What group the data are of, the
// volume remembers.
type memberState struct {
	agent.MemberFacts
	// joinedWith are the certificates of this membership, empty if they are not known, and certificates
	// how they compare with those of now.
	joinedWith   pki.Bundle
	certificates core.MemberCertificates
}

func (s *memberState) serverEnded(again bool) {
	s.ServerEnded(again)
	s.joinedWith, s.certificates = pki.Bundle{}, core.CertificatesInTime
}

// noteTried notes what came of joining the group, or of making it.
func (s *memberState) noteTried(ctx context.Context, err error) {
	var why string
	if err != nil {
		why = err.Error()
	}
	s.Tried(why, errors.Is(ctx.Err(), context.Canceled), time.Now())
}

// left is what a replacement binary is told.
func (s *memberState) left() handoverMember {
	return handoverMember{RebootEpoch: s.RebootEpoch, Bootstraps: s.Bootstraps,
		Settled: s.Settled, ProtocolOf: s.ProtocolOf,
		Admitted: s.Admitted, AdmittedEpoch: s.AdmittedEpoch, RejoinHeld: s.RejoinHeld, WentOn: s.WentOn,
		JoinedCA: s.joinedWith.CA, JoinedCert: s.joinedWith.Cert}
}

// inherit is the reverse of left.
func (s *memberState) inherit(l handoverMember) {
	s.MemberFacts = agent.MemberFacts{RebootEpoch: l.RebootEpoch, Bootstraps: l.Bootstraps,
		Settled: l.Settled, ProtocolOf: l.ProtocolOf,
		Admitted: l.Admitted, AdmittedEpoch: l.AdmittedEpoch, RejoinHeld: l.RejoinHeld, WentOn: l.WentOn}
	s.joinedWith = pki.Bundle{CA: l.JoinedCA, Cert: l.JoinedCert}
}

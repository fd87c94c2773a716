package observation

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/declared"
	"cnmsql.co/internal/gtid"
)

// GroupWish reads the wish for a group; nil where the instances are to be none. A
// name that the user has not chosen follows from the Cluster's UID: no other Cluster,
// recreated under the same name or restored from it, has the same. A Cluster that is restored, or goes on
// with the volumes of a deleted one, takes no other: a copied manifest has the name of the group that the data
// are of, which may still give the same GTIDs to other transactions.
func GroupWish(c *v1alpha1.Cluster) *core.Group {
	if !declared.Topology(&c.Spec).RunsGroup() {
		return nil
	}
	own := uuid.NewSHA1(uuid.NameSpaceOID, []byte("mysql.cnmsql.co/group/"+string(c.UID))).String()
	out := &core.Group{WishedName: own, WithoutEffect: withoutEffect(&c.Spec)}
	g := declared.Group(&c.Spec)
	if declared.FirstData(&c.Spec).IsElsewhere() || c.Status.AdoptedFrom != "" {
		out.NotTaken = g.GroupName
	} else {
		out.WishedName = cmp.Or(g.GroupName, own)
	}
	out.RecoverOutage = g.RecoverTotalOutage == v1alpha1.TotalOutageAutomatic
	out.ExpelTimeout = time.Duration(*g.MemberExpelTimeoutSeconds) * time.Second
	out.ForceQuorum = isAsked(c.Annotations, v1alpha1.AnnotationForceQuorum)
	_, out.ForceView, _ = strings.Cut(c.Annotations[v1alpha1.AnnotationForceQuorum], "@")
	return out
}

// withoutEffect are the fields that a manifest may have, and which say nothing in a group.
func withoutEffect(spec *v1alpha1.ClusterSpec) []string {
	var out []string
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"spec.failoverDelay", spec.FailoverDelay > 0},
		{"spec.failoverPolicy", !reflect.ValueOf(Policy(spec)).IsZero()},
		{"spec.mysql.semiSync", spec.MySQL.SemiSync != nil && spec.MySQL.SemiSync.Enabled},
		{"spec.minSyncReplicas", spec.MinSyncReplicas != nil && *spec.MinSyncReplicas > 0},
		{"spec.maxSyncReplicas", spec.MaxSyncReplicas != nil && *spec.MaxSyncReplicas > 0},
	} {
		if f.set {
			out = append(out, f.name)
		}
	}
	return out
}

func groupFrom(s *v1alpha1.ClusterStatus) (*core.GroupStatus, error) {
	g := s.GroupReplication
	if g == nil {
		return nil, nil
	}
	out := &core.GroupStatus{Name: g.GroupName, Bootstrapper: g.Bootstrapper, Bootstrapped: g.Bootstrapped,
		Primary: g.PrimaryMember, HasQuorum: g.HasQuorum,
		ViewID: g.ViewID, ViewMax: int(g.ObservedViewMax), OnlineMax: int(g.ObservedOnlineMax),
		New: g.NewInstances, OutageTried: g.TotalOutageTried, Recorded: recorded(s)}
	for _, l := range g.LeftOut {
		held, err := gtid.Parse(l.Held)
		if err != nil {
			return nil, fmt.Errorf("status.groupReplication.leftOut[%s].held: %w", l.Instance, err)
		}
		together, err := gtid.Parse(l.HeldTogether)
		if err != nil {
			return nil, fmt.Errorf("status.groupReplication.leftOut[%s].heldTogether: %w", l.Instance, err)
		}
		out.LeftOut = append(out.LeftOut, core.LeftOut{Instance: l.Instance, Held: held, Together: together,
			Admitted: l.Admitted})
	}
	var err error
	if out.Recoveries, err = recoveries(g); err != nil {
		return nil, err
	}
	for _, m := range g.Members {
		out.Members = append(out.Members, core.GroupMember{Instance: m.Instance, State: core.MemberState(m.State),
			Role: core.MemberRole(m.Role), Address: m.Address, Reachable: m.Reachable, Leaving: m.Leaving})
	}
	return out, nil
}

// IsUndecided reports what core.GroupStatus.IsUndecided does, of the Cluster's status: a recovery
// was ordered, and the group was not seen since. A nil status is not undecided.
func IsUndecided(g *v1alpha1.GroupReplicationStatus) bool {
	return g != nil && (&core.GroupStatus{ViewID: g.ViewID,
		Recoveries: make([]core.GroupRecovery, len(g.Recoveries))}).IsUndecided()
}

// GroupSize is what core.GroupStatus.Size is, of the Cluster's status, which must tell of a group.
func GroupSize(s *v1alpha1.ClusterStatus) int {
	told := s.GroupReplication
	g := core.GroupStatus{ViewMax: int(told.ObservedViewMax), New: told.NewInstances}
	for _, l := range told.LeftOut {
		g.LeftOut = append(g.LeftOut, core.LeftOut{Instance: l.Instance})
	}
	return g.Size(s.InstanceNames)
}

// recoveries reads the recoveries of a group out of its status, which must not be nil. An error
// means that a GTID set in it cannot be read.
func recoveries(g *v1alpha1.GroupReplicationStatus) (out []core.GroupRecovery, err error) {
	for _, r := range g.Recoveries {
		held, err := gtid.Parse(r.Held)
		if err != nil {
			return nil, fmt.Errorf("status.groupReplication.recoveries[%d].held: %w", r.Epoch, err)
		}
		out = append(out, core.GroupRecovery{Epoch: r.Epoch, Held: held, Pending: r.Pending})
	}
	return out, nil
}

// recorded is what the instances had executed when the status was last written. A set that
// was too long is abbreviated there, and tells nothing; nor does what the group never had, or
// went on without.
func recorded(s *v1alpha1.ClusterStatus) (out gtid.Set) {
	for name, text := range s.GTIDExecutedByInstance {
		left := s.GroupReplication != nil && slices.ContainsFunc(s.GroupReplication.LeftOut,
			func(l v1alpha1.LeftOutMember) bool { return l.Instance == name })
		if set, err := gtid.Parse(text); err == nil && !left && !slices.Contains(s.DivergedInstances, name) {
			out = out.Union(set)
		}
	}
	return out
}

func groupTo(g *core.GroupStatus) *v1alpha1.GroupReplicationStatus {
	if g == nil {
		return nil
	}
	out := &v1alpha1.GroupReplicationStatus{GroupName: g.Name, Bootstrapper: g.Bootstrapper,
		Bootstrapped: g.Bootstrapped, PrimaryMember: g.Primary, HasQuorum: g.HasQuorum,
		ViewID: g.ViewID, ObservedViewMax: int32(g.ViewMax), ObservedOnlineMax: int32(g.OnlineMax),
		NewInstances: g.New, TotalOutageTried: g.OutageTried}
	for _, l := range g.LeftOut {
		out.LeftOut = append(out.LeftOut, v1alpha1.LeftOutMember{Instance: l.Instance, Held: l.Held.String(),
			HeldTogether: l.Together.String(), Admitted: l.Admitted})
	}
	for _, r := range g.Recoveries {
		out.Recoveries = append(out.Recoveries, v1alpha1.GroupRecovery{Epoch: r.Epoch, Held: r.Held.String(),
			Pending: r.Pending})
	}
	for _, m := range g.Members {
		out.Members = append(out.Members, v1alpha1.GroupMember{Instance: m.Instance, State: string(m.State),
			Role: string(m.Role), Address: m.Address, Reachable: m.Reachable, Leaving: m.Leaving})
	}
	return out
}

package observation

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// StatusFrom reads what was decided before out of a Cluster's status. An error means that a part
// of it cannot be read.
func StatusFrom(s *v1alpha1.ClusterStatus) (core.Status, error) {
	out := core.Status{
		Phase: core.Phase(s.Phase), Reason: s.PhaseReason, Diagnosis: core.Diagnosis(s.Diagnosis),
		CurrentPrimary: s.CurrentPrimary, CurrentPrimaryAt: timeFrom(s.CurrentPrimaryTimestamp),
		TargetPrimary: s.TargetPrimary, TargetPrimaryAt: momentFrom(s.TargetPrimaryTimestamp),
		Epoch: s.PrimaryEpoch, FailingSince: timeFrom(s.PrimaryFailingSince),
		LastFailover: timeFrom(s.LastFailoverTimestamp), EstablishedAt: timeFrom(s.EstablishedAt),
		AdoptedFrom:   s.AdoptedFrom,
		InstanceNames: s.InstanceNames, Members: s.Members, LatestOrdinal: int(s.LatestGeneratedNode),
		Diverged: s.DivergedInstances, Broken: s.ReplicationBrokenInstances, Fenced: s.FencedInstances,
		Ready: int(s.ReadyInstances),
	}
	if o := s.Operation; o != nil {
		out.Operation = &core.Operation{Kind: core.OperationKind(o.Kind), Step: core.Step(o.Step),
			From: o.From, To: o.To,
			Reason: core.Reason(o.Reason), StartedAt: timeFrom(o.StartedAt), Deadline: timeFrom(o.Deadline),
			PausedAt: timeFrom(o.PausedAt), Witnesses: o.Witnesses}
	}
	if r := s.SwitchoverReturn; r != nil {
		out.Return = &core.Return{Target: r.Target, Why: r.Reason, At: timeFrom(r.At), Times: int(r.Times)}
	}
	if s.Blocked != nil {
		out.Blocked = new(noticeFrom(*s.Blocked))
	}
	for _, n := range s.Notices {
		out.Notices = append(out.Notices, noticeFrom(n))
	}
	for _, p := range s.LastOperations {
		out.Past = append(out.Past, pastFrom(p))
	}
	var err error
	if out.Group, err = groupFrom(s); err != nil {
		return out, err
	}
	out.Promotion, err = promotionFrom(s.Promotion)
	return out, err
}

// promotionFrom reads a promotion out of a Cluster's status; nil is none.
func promotionFrom(p *v1alpha1.PromotionStatus) (*core.Promotion, error) {
	if p == nil {
		return nil, nil
	}
	required, err := gtid.Parse(p.RequiredGTID)
	if err != nil {
		return nil, fmt.Errorf("status.promotion.requiredGTID: %w", err)
	}
	return &core.Promotion{Epoch: p.Epoch, Instance: p.Instance, Proof: core.Proof(p.Proof),
		Evidence: p.Evidence, From: p.From, Follows: p.Follows,
		RequiredGTID: required, RequiredAcks: int(p.RequiredAcks), AcksOrder: p.AcksOrder,
		OrderedAcks: int(p.OrderedAcks), GrantedAt: timeFrom(p.GrantedAt),
		PodUID: p.PodUID, Node: p.Node, WritableSince: timeFrom(p.WritableSince),
		LosslessSince: p.LosslessSince, Size: int(p.Size), Leased: p.Leased, Isolations: int(p.Isolations),
		Pods: p.Pods, Ended: p.EndedPods, Awaited: int(p.AwaitedPods), NoWritesBelow: p.NoWritesBelow}, nil
}

// WriteStatus puts a decided status into a Cluster's.
func WriteStatus(to *v1alpha1.ClusterStatus, s core.Status) {
	to.Phase, to.PhaseReason, to.Diagnosis = string(s.Phase), s.Reason, string(s.Diagnosis)
	to.CurrentPrimary, to.CurrentPrimaryTimestamp = s.CurrentPrimary, timeTo(s.CurrentPrimaryAt)
	to.TargetPrimary, to.TargetPrimaryTimestamp = s.TargetPrimary, momentTo(s.TargetPrimaryAt)
	to.PrimaryEpoch, to.PrimaryFailingSince = s.Epoch, timeTo(s.FailingSince)
	to.LastFailoverTimestamp, to.EstablishedAt = timeTo(s.LastFailover), timeTo(s.EstablishedAt)
	to.AdoptedFrom = s.AdoptedFrom
	to.InstanceNames, to.Members, to.LatestGeneratedNode = s.InstanceNames, s.Members, int32(s.LatestOrdinal)
	to.DivergedInstances, to.ReplicationBrokenInstances, to.FencedInstances = s.Diverged, s.Broken, s.Fenced
	to.ReadyInstances, to.Instances = int32(s.Ready), int32(len(s.InstanceNames))
	to.GroupReplication = groupTo(s.Group)
	to.Operation, to.Promotion = operationTo(s.Operation), promotionTo(s.Promotion)
	to.SwitchoverReturn = nil
	if r := s.Return; r != nil {
		to.SwitchoverReturn = &v1alpha1.SwitchoverReturn{Target: r.Target, Reason: r.Why, At: timeTo(r.At),
			Times: int32(r.Times)}
	}
	to.Blocked, to.Notices, to.LastOperations = nil, nil, nil
	if s.Blocked != nil {
		to.Blocked = new(noticeTo(*s.Blocked))
	}
	for _, n := range s.Notices {
		to.Notices = append(to.Notices, noticeTo(n))
	}
	for _, p := range s.Past {
		to.LastOperations = append(to.LastOperations, pastTo(p))
	}
}

func pastFrom(p v1alpha1.PastOperation) core.PastOperation {
	return core.PastOperation{Kind: core.OperationKind(p.Kind), Reason: core.Reason(p.Reason), From: p.From, To: p.To,
		Primary: p.Primary, Epoch: p.Epoch,
		Proof: core.Proof(p.Proof), StartedAt: timeFrom(p.StartedAt), StoppedAt: timeFrom(p.StoppedAt),
		EndedAt: timeFrom(p.EndedAt)}
}

func pastTo(p core.PastOperation) v1alpha1.PastOperation {
	return v1alpha1.PastOperation{Kind: string(p.Kind), Reason: string(p.Reason), From: p.From, To: p.To,
		Primary: p.Primary, Epoch: p.Epoch,
		Proof: string(p.Proof), StartedAt: timeTo(p.StartedAt), StoppedAt: timeTo(p.StoppedAt),
		EndedAt: timeTo(p.EndedAt)}
}

func noticeFrom(n v1alpha1.Notice) core.Notice {
	return core.Notice{Reason: core.Reason(n.Reason), Subject: n.Subject, Message: n.Message, Since: timeFrom(n.Since)}
}

func noticeTo(n core.Notice) v1alpha1.Notice {
	return v1alpha1.Notice{Reason: string(n.Reason), Subject: n.Subject, Message: n.Message, Since: timeTo(n.Since)}
}

func operationTo(o *core.Operation) *v1alpha1.OperationStatus {
	if o == nil {
		return nil
	}
	return &v1alpha1.OperationStatus{Kind: string(o.Kind), Step: string(o.Step), From: o.From, To: o.To,
		Reason: string(o.Reason), StartedAt: timeTo(o.StartedAt), Deadline: timeTo(o.Deadline),
		PausedAt: timeTo(o.PausedAt), Witnesses: o.Witnesses}
}

func promotionTo(p *core.Promotion) *v1alpha1.PromotionStatus {
	if p == nil {
		return nil
	}
	return &v1alpha1.PromotionStatus{Epoch: p.Epoch, Instance: p.Instance, Proof: string(p.Proof),
		Evidence: p.Evidence, From: p.From, Follows: p.Follows,
		RequiredGTID: p.RequiredGTID.String(), RequiredAcks: int32(p.RequiredAcks), AcksOrder: p.AcksOrder,
		OrderedAcks: int32(p.OrderedAcks), GrantedAt: timeTo(p.GrantedAt),
		PodUID: p.PodUID, Node: p.Node, WritableSince: timeTo(p.WritableSince),
		LosslessSince: p.LosslessSince, Size: int32(p.Size), Leased: p.Leased, Isolations: int32(p.Isolations),
		Pods: p.Pods, EndedPods: p.Ended, AwaitedPods: int32(p.Awaited), NoWritesBelow: p.NoWritesBelow}
}

func timeFrom(t *metav1.MicroTime) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

func momentFrom(t *v1alpha1.Moment) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

func momentTo(t time.Time) *v1alpha1.Moment {
	if t.IsZero() {
		return nil
	}
	return &v1alpha1.Moment{MicroTime: *timeTo(t)}
}

// timeTo keeps microseconds, which is what the API keeps: a status that was
// written compares equal to itself when read back.
func timeTo(t time.Time) *metav1.MicroTime {
	if t.IsZero() {
		return nil
	}
	return &metav1.MicroTime{Time: t.UTC().Truncate(time.Microsecond)}
}

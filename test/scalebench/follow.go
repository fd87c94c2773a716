package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/resources"
)

// sees has the instance go by a Cluster as it is now: open if it is promoted, follow if
// another is.
func (in *instance) sees(c *v1alpha1.Cluster) {
	if in.fleet.isSilent(in.node()) {
		return // what is cut off sees nothing; it is shown the Cluster again afterwards
	}
	p := c.Status.Promotion
	in.change(func(r *core.Report) {
		in.view = c
		r.SeenEpoch, r.ViewEpoch = max(r.SeenEpoch, c.Status.PrimaryEpoch), max(r.ViewEpoch, c.Status.PrimaryEpoch)
		r.Generation = c.Generation
		switch {
		case p == nil:
		case p.Instance == in.key.Name:
			r.ClusterSize, r.Leased = int(p.Size), p.Leased
			in.opensIn(r, p.Epoch)
		default:
			r.ClusterSize, r.Leased = int(p.Size), p.Leased
			in.follow(r, c)
		}
	})
}

// opensIn makes it writable in an epoch, once it has the lease.
func (in *instance) opensIn(r *core.Report, epoch int64) {
	if r.WritableEpoch == epoch || in.opening == epoch || epoch < r.NoWritesBelow {
		return
	}
	in.opening = epoch
	go func() {
		for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
			if in.takeLease(context.Background(), epoch) == nil {
				break
			}
			time.Sleep(pause)
		}
		in.change(func(r *core.Report) { in.opens(r, epoch) })
	}()
}

// opens makes it writable.
func (in *instance) opens(r *core.Report, epoch int64) {
	in.populate(r, nil)
	r.WritableEpoch, r.LastWritable, r.Withheld = epoch, epoch, nil
	r.Server.SuperReadOnly = false
	acks := 0
	if p := in.view.Status.Promotion; p != nil {
		acks = int(p.RequiredAcks)
	}
	r.Server.SemiSync = core.SemiSync{SourceEnabled: true, SourceActive: true, Acks: acks, Clients: instances - 1,
		Blocks: true, ReplicaEnabled: true}
	in.opened = time.Now()
}

// follow has it follow the primary, once that one takes writes. Without data it waits for a
// donor.
func (in *instance) follow(r *core.Report, c *v1alpha1.Cluster) {
	r.WritableEpoch, in.opening = 0, 0
	if r.Data != core.DataPopulated {
		r.State, r.Data = core.AwaitingClone, core.DataScratch
		return
	}
	if source := in.sourceIn(c); source != nil && source.sends() && c.Status.CurrentPrimary == source.key.Name {
		in.populate(r, source)
		r.Withheld = nil
	}
}

// keepLease renews the lease as a primary does, while it is one.
func (in *instance) keepLease() {
	for range time.Tick(time.Second) {
		in.mu.Lock()
		epoch, due := in.report.WritableEpoch, time.Since(in.renewed) >= core.LeaseRenewal
		in.mu.Unlock()
		if epoch != 0 && due && !in.fleet.isSilent(in.node()) {
			_ = in.takeLease(context.Background(), epoch)
		}
	}
}

// takeLease reads and writes the record as a manager does.
func (in *instance) takeLease(ctx context.Context, epoch int64) error {
	var record coordination.Lease
	key := types.NamespacedName{Namespace: in.key.Namespace, Name: resources.Names(in.cluster.Name).Lease()}
	if err := in.fleet.kube.live.Get(ctx, key, &record); err != nil {
		return err
	}
	at, _ := strconv.ParseInt(record.Annotations[v1alpha1.AnnotationEpoch], 10, 64)
	holder := ptr.Deref(record.Spec.HolderIdentity, "")
	if no := agent.LeaseRefused(in.key.Name, epoch, holder, at); no != "" {
		return errors.New(no)
	}
	now, seconds := metav1.NowMicro(), int32(core.LeaseTTL.Seconds())
	record.Spec.HolderIdentity, record.Spec.LeaseDurationSeconds, record.Spec.RenewTime = &in.key.Name, &seconds, &now
	if record.Annotations == nil {
		record.Annotations = map[string]string{}
	}
	record.Annotations[v1alpha1.AnnotationEpoch] = strconv.FormatInt(epoch, 10)
	if err := in.fleet.kube.live.Update(ctx, &record); err != nil {
		return err
	}
	in.mu.Lock()
	in.renewed = time.Now()
	in.mu.Unlock()
	return nil
}

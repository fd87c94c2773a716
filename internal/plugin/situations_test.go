package plugin

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
)

func at(before time.Duration) *metav1.MicroTime { return &metav1.MicroTime{Time: now.Add(-before)} }

// healthy is three instances, demo-1 primary, all asked. Cases change it.
func healthy() *Facts {
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: "shop", UID: "demo",
		CreationTimestamp: metav1.Time{Time: now.Add(-50 * time.Hour)}}}
	c.Spec.Instances = 3
	c.Spec.MySQL.SemiSync = &v1alpha1.SemiSyncSpec{Enabled: true, DataDurability: v1alpha1.DurabilityQuorum}
	c.Status = v1alpha1.ClusterStatus{
		Phase: string(core.PhaseHealthy), PhaseReason: "demo-1 takes writes; all 3 instances are healthy",
		Diagnosis:      string(core.PrimaryHealthy),
		CurrentPrimary: "demo-1", CurrentPrimaryTimestamp: at(49 * time.Hour), TargetPrimary: "demo-1", PrimaryEpoch: 4,
		EstablishedAt: at(50 * time.Hour),
		Promotion: &v1alpha1.PromotionStatus{Epoch: 4, Instance: "demo-1", From: "demo-2", RequiredAcks: 1,
			LosslessSince: 2, Leased: true, Proof: string(core.ProofManagerFenced),
			Evidence: "the manager of demo-2 promised to stay read-only below epoch 4", GrantedAt: at(49*time.Hour +
				640*time.Millisecond), WritableSince: at(49 * time.Hour), Node: "n1"},
		InstanceNames: []string{"demo-1", "demo-2", "demo-3"}, Instances: 3, ReadyInstances: 3,
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Healthy"},
			{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionFalse, Reason: "Healthy"}},
	}
	f := &Facts{Cluster: c, Pods: map[string]*corev1.Pod{}, Live: map[string]Live{},
		ReadWrite: resources.ReadWriteService(c, "demo-1"), Now: now}
	primary := &core.Report{Instance: "demo-1", Node: "n1", State: core.Running, Data: core.DataPopulated,
		WritableEpoch: 4, Version: "9.7.0",
		Server: &core.Server{UUID: uuid1, Executed: set(uuid1 + ":1-1000"), SemiSync: core.SemiSync{
			SourceEnabled: true, SourceActive: true, Acks: 1, Clients: 2, Blocks: true}}}
	f.add(primary)
	f.Reference = primary
	f.add(replica("demo-2", "n2", ":1-1000"))
	f.add(replica("demo-3", "n3", ":1-990"))
	f.Live["demo-3"].Report.Server.Replication.LagSeconds = 0.21
	return f
}

func replica(name, node, executed string) *core.Report {
	return &core.Report{Instance: name, Node: node, State: core.Running, Data: core.DataPopulated, Version: "9.7.0",
		Server: &core.Server{UUID: uuid2, SuperReadOnly: true, Executed: set(uuid1 + executed),
			Replication: &core.Replication{SourceHost: "demo-1.shop.svc", IORunning: true, SQLRunning: true}}}
}

// add puts an instance with its Pod and its last word in the status.
func (f *Facts) add(r *core.Report) {
	role := v1alpha1.RoleReplica
	if r.WritableEpoch > 0 {
		role = v1alpha1.RolePrimary
	}
	s := &f.Cluster.Status
	s.InstancesReported = append(s.InstancesReported, v1alpha1.InstanceStatus{Name: r.Instance, State: string(r.State),
		Role: role, Ready: true, Version: r.Version, Node: r.Node})
	f.Pods[r.Instance] = &corev1.Pod{Spec: corev1.PodSpec{NodeName: r.Node},
		Status: corev1.PodStatus{Phase: corev1.PodRunning,
			ContainerStatuses: []corev1.ContainerStatus{{Name: "mysql", Ready: true}}}}
	f.Live[r.Instance] = Live{Report: r}
}

func (f *Facts) notReady(name string) { f.Pods[name].Status.ContainerStatuses[0].Ready = false }

func (f *Facts) phase(p core.Phase, diagnosis core.Diagnosis, reason string) {
	s := &f.Cluster.Status
	s.Phase, s.Diagnosis, s.PhaseReason = string(p), string(diagnosis), reason
	s.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionHealthy, Status: metav1.ConditionFalse,
		Reason: string(p), Message: reason}}
}

func failover() *Facts {
	f := healthy()
	f.phase(core.PhaseFailover, core.MysqldDown, "reading what the replicas hold")
	s := &f.Cluster.Status
	s.ReadyInstances, s.PrimaryFailingSince = 2, at(900*time.Millisecond)
	s.Operation = &v1alpha1.OperationStatus{Kind: "Failover", Step: string(core.StepElect), From: "demo-1",
		Reason: string(core.MysqldDown), StartedAt: at(1200 * time.Millisecond)}
	f.notReady("demo-1")
	f.Live["demo-1"] = Live{Report: &core.Report{Instance: "demo-1", Node: "n1", State: core.Stopped,
		Data: core.DataPopulated, Version: "9.7.0",
		Message: "mysqld ended by signal killed", NoWritesBelow: 5}}
	f.Reference = f.Live["demo-1"].Report
	return f
}

// failoverForLong has not been Healthy for longer than it takes to wait in silence.
func failoverForLong() *Facts {
	f := failover()
	s := &f.Cluster.Status
	s.Operation.StartedAt = at(40 * time.Second)
	s.Notices = []v1alpha1.Notice{{Reason: string(core.RefusalLag)}}
	s.Conditions[0].LastTransitionTime = metav1.Time{Time: now.Add(-45 * time.Second)}
	return f
}

func blocked() *Facts {
	f := healthy()
	f.phase(core.PhaseBlocked, core.PrimaryUnreachableReplicasLost, "demo-1 may still take writes on n1 "+
		"(PrimaryUnreachableReplicasLost: its manager cannot be reached, and replicas do not receive from it): its "+
		"manager does not answer, and its kubelet has not reported that its container ended. So the operator "+
		"promotes nobody. Do one: (1) Bring n1 or its network back. (2) Only if n1 is powered off, not merely cut "+
		"off: kubectl taint node n1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute. (3) Accept the loss of "+
		"writes that the promoted instance lacks: kubectl cnmsql failover demo --to INSTANCE --accept-data-loss")
	s := &f.Cluster.Status
	s.ReadyInstances, s.PrimaryFailingSince = 2, at(4*time.Minute)
	s.Operation = &v1alpha1.OperationStatus{Kind: "Failover", Step: string(core.StepProve), From: "demo-1",
		Reason: string(core.PrimaryUnreachableReplicasLost), StartedAt: at(4 * time.Minute)}
	f.notReady("demo-1")
	s.InstancesReported[0] = v1alpha1.InstanceStatus{Name: "demo-1", State: "Unknown", Node: "n1"}
	f.Live["demo-1"] = Live{Problem: "no answer within 3s"}
	f.Reference = nil
	for _, name := range []string{"demo-2", "demo-3"} {
		r := f.live(name).Server.Replication
		r.IORunning, r.IOConnecting, r.IOError = false, true,
			"error reconnecting to source 'cnmsql_replication@demo-1.shop.svc:3306'"
	}
	return f
}

func provisioning() *Facts {
	f := healthy()
	f.phase(core.PhaseProvisioning, core.PrimaryHealthy, "waiting for the instances to become ready")
	f.Cluster.Status.ReadyInstances = 1
	f.Cluster.Status.Promotion.Proof, f.Cluster.Status.Promotion.Evidence, f.Cluster.Status.Promotion.From =
		string(core.ProofBootstrap), "there never was a primary", ""
	f.Live["demo-2"] = Live{Report: &core.Report{Instance: "demo-2", Node: "n2", State: core.Cloning,
		Data: core.DataScratch, Version: "9.7.0",
		Clone: &core.Clone{Donor: "demo-1.shop.svc", Stage: "FILE COPY", Percent: 42}}}
	f.notReady("demo-2")
	f.Cluster.Status.InstancesReported[2] = v1alpha1.InstanceStatus{Name: "demo-3", State: "Unknown",
		Message: "ImagePullBackOff: Back-off pulling image mysql:9.77"}
	f.Live["demo-3"] = Live{Problem: "its Pod is Pending"}
	f.Pods["demo-3"].Status = corev1.PodStatus{Phase: corev1.PodPending,
		ContainerStatuses: []corev1.ContainerStatus{{Name: "mysql",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}}
	return f
}

// isRestored has its backup's files, could not use the newest one, and replays the archive.
func isRestored() *Facts {
	f := provisioning()
	f.phase(core.PhaseProvisioning, core.PrimaryPromoting,
		"waiting for demo-1 to become the first primary: restoring the backup")
	f.live("demo-1").State, f.live("demo-1").Server, f.live("demo-1").WritableEpoch = core.Restoring, nil, 0
	f.live("demo-1").Restore = &core.Restore{Backup: "20261122T013000Z-1a2b3c4d", Stage: core.RestoreReplay,
		PassedOver: []core.PassedOver{{Backup: "20261123T013000Z-5e6f7a8b", Reason: "PartMissing"}},
		Files:      core.Amount{Done: 4 << 30, Of: 4 << 30, PerSecond: 200 << 20},
		Replay:     core.Amount{Done: 250, Of: 1000, PerSecond: 25, Ends: now.Add(30 * time.Second)},
		Bytes:      3 << 20, TotalBytes: 12 << 20, Part: "2/17",
		Reached: now.Add(-9 * time.Hour), Until: now.Add(-time.Hour), Lacking: []string{"shop.seen", "shop.sessions"}}
	return f
}

// restoringFiles is told by the status alone: nobody asked the instance.
func restoringFiles() *Facts {
	f := isRestored()
	f.Cluster.Status.Restore = &v1alpha1.RestoreStatus{Stage: "Backup", BackupID: "20261122T013000Z-1a2b3c4d",
		Backup: &v1alpha1.BackupProgress{Bytes: 1 << 30, TotalBytes: 4 << 30, Percent: "25%", BytesPerSecond: 100 << 20,
			ExpectedEnd: &metav1.Time{Time: now.Add(31 * time.Second)}}}
	f.Live, f.LiveProblem = nil, "instances were not asked"
	return f
}

func diverged() *Facts {
	f := healthy()
	f.phase(core.PhaseDegraded, core.PrimaryHealthy,
		"demo-2: transactions that the primary does not have; kept out of service")
	f.Cluster.Status.DivergedInstances = []string{"demo-2"}
	f.live("demo-2").Server.Executed = set(uuid1 + ":1-998," + uuid2 + ":7-9")
	f.live("demo-2").Server.Replication = nil
	return f
}

func degraded() *Facts {
	f := healthy()
	f.phase(core.PhaseDegraded, core.PrimaryHealthy, "replication of demo-3 is broken: Could not execute Write_rows "+
		"event on table shop.orders; Duplicate entry '7'")
	f.Cluster.Status.ReplicationBrokenInstances = []string{"demo-3"}
	f.Cluster.Status.ReadyInstances = 2
	f.notReady("demo-3")
	r := f.live("demo-3").Server.Replication
	r.SQLRunning, r.SQLError = false, "Could not execute Write_rows event on table shop.orders; Duplicate entry '7'"
	f.Pods["demo-2"].Status.ContainerStatuses[0].RestartCount = 2
	f.Pods["demo-2"].Status.ContainerStatuses[0].LastTerminationState.Terminated =
		&corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137}
	return f
}

func unreachable() *Facts {
	f := healthy()
	f.phase(core.PhaseDegraded, core.PrimaryHealthy, "waiting for the instances to become ready")
	f.Cluster.Status.ReadyInstances = 2
	f.Cluster.Status.InstancesReported[2].State = "Unknown"
	f.notReady("demo-3")
	f.Live["demo-3"] = Live{Problem: "no answer within 3s"}
	return f
}

func full() *Facts {
	f := healthy()
	says := "its volume is full, and commits wait for space: raise spec.storage.size, or free space; they go on " +
		"within a minute of that"
	f.phase(core.PhaseDegraded, core.PrimaryFull, "commits on demo-1 hang: "+says)
	f.live("demo-1").Reason, f.live("demo-1").Message = core.InstanceDiskFull, says
	return f
}

func writesWait() *Facts {
	f := healthy()
	f.phase(core.PhaseDegraded, core.PrimaryHealthy, "waiting for the instances to become ready")
	f.Cluster.Status.ReadyInstances = 1
	f.live("demo-1").Server.SemiSync.Clients = 0
	f.Cluster.Status.Conditions = append(f.Cluster.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionDurable,
		Status: metav1.ConditionFalse,
		Reason: "TooFewAcknowledgements", Message: "0 of 1 replicas acknowledge"})
	for _, name := range []string{"demo-2", "demo-3"} {
		delete(f.Pods, name)
		f.Live[name] = Live{Problem: "its Pod does not exist"}
	}
	return f
}

func notPermitted() *Facts {
	f := healthy()
	f.Live, f.Pods, f.Reference, f.ReadWrite = nil, nil, nil, nil
	f.LiveProblem = `instances were not asked, for that needs the right to create pods/exec: pods "demo-1" is forbidden`
	return f
}

func fencedPrimary() *Facts {
	f := healthy()
	f.phase(core.PhaseBlocked, core.PrimaryFenced,
		"a human fenced the primary demo-1: no instance takes writes, and the operator promotes none. To end this: "+
			"kubectl cnmsql fence off demo demo-1")
	f.Cluster.Status.FencedInstances, f.Cluster.Status.ReadyInstances = []string{"demo-1", "demo-3"}, 1
	for _, name := range f.Cluster.Status.FencedInstances {
		f.notReady(name)
		f.Live[name] = Live{Report: &core.Report{Instance: name, Node: f.Pods[name].Spec.NodeName, State: core.Fenced,
			Data: core.DataPopulated, Version: "9.7.0",
			Message: "it is fenced: mysqld is stopped, data is kept; kubectl cnmsql fence off brings it back"}}
	}
	f.Reference = f.Live["demo-1"].Report
	return f
}

// bounded is a failover that the user's own bounds forbid.
func bounded() *Facts {
	f := blocked()
	most := int64(100)
	f.Cluster.Spec.FailoverPolicy = &v1alpha1.FailoverPolicy{MaxTransactionsBehind: &most,
		MaxReplicationLag:       &metav1.Duration{Duration: 30 * time.Second},
		MinTimeBetweenFailovers: &metav1.Duration{Duration: 10 * time.Minute}, PreferredPrimary: []string{"demo-1"}}
	s := &f.Cluster.Status
	s.LastFailoverTimestamp = at(7 * time.Minute)
	s.Operation.Step = string(core.StepDelay)
	f.phase(core.PhaseBlocked, core.PrimaryUnreachableReplicasLost, "the primary demo-1 is failing "+
		"(PrimaryUnreachableReplicasLost), but the operator does not replace it yet: "+
		"spec.failoverPolicy.minTimeBetweenFailovers is 10m0s, and the last failover was at 02:53:00 UTC")
	s.Blocked = &v1alpha1.Notice{Reason: string(core.RefusalTooSoon), Message: s.PhaseReason, Since: at(time.Minute)}
	// demo-2 found itself what it has and its primary had not.
	s.DivergedInstances = []string{"demo-2"}
	f.live("demo-2").Errant = set(uuid2 + ":7-9")
	return f
}

// outage: nobody answers, nor does the operator run: its last word is that all is well.
func outage() *Facts {
	f := healthy()
	for _, name := range f.Cluster.Status.InstanceNames {
		f.Live[name] = Live{Problem: "no answer within 3s"}
	}
	f.Reference = nil
	return f
}

func untouched() *Facts {
	f := healthy()
	f.Cluster.Status, f.Live, f.Pods, f.Reference, f.ReadWrite = v1alpha1.ClusterStatus{}, nil, nil, nil, nil
	return f
}

var situations = map[string]func() *Facts{
	"healthy": healthy, "failover": failover, "failover-long": failoverForLong, "blocked": blocked,
	"provisioning": provisioning, "diverged": diverged, "degraded": degraded,
	"unreachable": unreachable, "writes-wait": writesWait, "not-permitted": notPermitted, "untouched": untouched,
	"fenced-primary": fencedPrimary, "bounded": bounded, "outage": outage, "full": full,
	"restoring": isRestored, "restoring-files": restoringFiles, "following": following, "taking-over": takingOver,
}

// deserted is a cluster whose primary's Pod is gone, and whose operator is dead.
func deserted() *Facts {
	f := healthy()
	delete(f.Pods, "demo-1")
	return f
}

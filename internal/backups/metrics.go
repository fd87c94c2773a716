package backups

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// collectLimit bounds how long a scrape waits for the cache.
const collectLimit = 5 * time.Second

// Metrics are those of Backups, and of what they close in the archive, one series a Cluster. They
// are made from the objects that there are at each scrape: nothing is remembered, and a Cluster
// without Backups has none of them.
type Metrics struct{ from client.Reader }

// NewMetrics registers them; from is a cache.
func NewMetrics(reg prometheus.Registerer, from client.Reader) {
	reg.MustRegister(&Metrics{from})
}

var (
	lastSuccess = description("success_timestamp_seconds", "When the last Backup that is complete ended")
	lastFailure = description("failure_timestamp_seconds", "When the last Backup that failed ended")
	lastSize    = description("size_bytes", "How much data the last complete Backup holds")
	lastStored  = description("stored_bytes", "How much of the store the last complete Backup takes")
	lastTook    = description("duration_seconds", "How long the last complete Backup took")
	nextDue     = description("due_timestamp_seconds",
		"When the next Backup of a ScheduledBackup is made; in the past, it is held back")
	heldBack = description("schedules_held_back",
		"How many ScheduledBackups make no Backups, for a reason that is in their status")
	notRemoved = description("removals_failing",
		"How many Backups, and Clusters, are being deleted and cannot have their data removed from the store")
	retentionHeld = description("retention_held", "1 if the last look at what has expired removed nothing from the "+
		"store, or less than it could; no series where nothing expires, or before the first look")
	archiveGap = prometheus.NewDesc("cnmsql_cluster_archive_gap", "1 while no Backup closes a gap in the archive, "+
		"or was taken since it has begun or moved: nobody can restore what was written since", clusterLabels, nil)
)

var clusterLabels = []string{"namespace", "cluster"}

func description(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("cnmsql_cluster_backup_"+name, help, clusterLabels, nil)
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{lastSuccess, lastFailure, lastSize, lastStored, lastTook, notRemoved,
		nextDue, heldBack, retentionHeld, archiveGap} {
		to <- d
	}
}

// Collect implements prometheus.Collector. While the Backups are not known there are no
// metrics of them.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectLimit)
	defer cancel()
	var all v1alpha1.BackupList
	var clusters v1alpha1.ClusterList
	var scheduled v1alpha1.ScheduledBackupList
	if m.from.List(ctx, &all) != nil || m.from.List(ctx, &clusters) != nil || m.from.List(ctx, &scheduled) != nil {
		return
	}
	its := current(all.Items, clusters.Items)
	completed := newest(its, (*v1alpha1.Backup).IsRestorable)
	failed := newest(its, func(b *v1alpha1.Backup) bool { return b.Status.Phase == v1alpha1.BackupFailed })
	put := func(of types.NamespacedName, d *prometheus.Desc, value float64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, of.Namespace, of.Name)
	}
	for of, b := range completed {
		put(of, lastSuccess, float64(b.Status.StoppedAt.Unix()))
		put(of, lastSize, float64(b.Status.Size))
		put(of, lastStored, float64(b.Status.StoredSize))
		if began := b.Status.StartedAt; began != nil {
			put(of, lastTook, b.Status.StoppedAt.Sub(began.Time).Seconds())
		}
	}
	for of, b := range failed {
		put(of, lastFailure, float64(b.Status.StoppedAt.Unix()))
	}
	due, held := schedules(scheduled.Items)
	for of, next := range due {
		put(of, nextDue, float64(next.Unix()))
	}
	for of, n := range held {
		put(of, heldBack, float64(n))
	}
	for of, n := range removalsFailing(all.Items, clusters.Items) {
		put(of, notRemoved, float64(n))
	}
	for of, is := range retentions(its, clusters.Items) {
		put(of, retentionHeld, is)
	}
	for of, is := range gaps(all.Items, clusters.Items) {
		put(of, archiveGap, is)
	}
}

// gaps are, of each Cluster that archives, 1 while a gap in its archive is open and 0 otherwise.
func gaps(all []v1alpha1.Backup, clusters []v1alpha1.Cluster) map[types.NamespacedName]float64 {
	out := map[types.NamespacedName]float64{}
	for i := range clusters {
		c := &clusters[i]
		if c.DeletionTimestamp != nil || !c.Spec.Backup.Archives() {
			continue
		}
		of := client.ObjectKeyFromObject(c)
		if out[of] = 0; isGapOpen(c, all) {
			out[of] = 1
		}
	}
	return out
}

// retentions are, of each Cluster that keeps backups for a time only, 1 if the newest Backup after which it was
// looked what has expired tells that something was held, but for what is so in the beginning, and 0 otherwise.
func retentions(its []v1alpha1.Backup, clusters []v1alpha1.Cluster) map[types.NamespacedName]float64 {
	condition := func(b *v1alpha1.Backup) *metav1.Condition {
		return meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionBackupRetention)
	}
	looked := newest(its, func(b *v1alpha1.Backup) bool { return condition(b) != nil })
	out := map[types.NamespacedName]float64{}
	for i := range clusters {
		of := client.ObjectKeyFromObject(&clusters[i])
		b, policy := looked[of], clusters[i].Spec.Backup
		if b == nil || policy == nil || policy.RetentionPolicy == "" {
			continue
		}
		is := condition(b)
		if out[of] = 0; is.Status == metav1.ConditionFalse && core.Reason(is.Reason) != core.RetentionYoung {
			out[of] = 1
		}
	}
	return out
}

// schedules are, of each Cluster that has some, when the next Backup is due, and how many of its
// ScheduledBackups make none.
func schedules(all []v1alpha1.ScheduledBackup) (due map[types.NamespacedName]metav1.Time,
	held map[types.NamespacedName]int) {
	due, held = map[types.NamespacedName]metav1.Time{}, map[types.NamespacedName]int{}
	for i := range all {
		sb := &all[i]
		of := types.NamespacedName{Namespace: sb.Namespace, Name: sb.Spec.Cluster.Name}
		if held[of] += 0; sb.Status.Problem != "" {
			held[of]++
		}
		next := sb.Status.NextScheduleTime
		if before, is := due[of]; next != nil && (!is || next.Before(&before)) {
			due[of] = *next
		}
	}
	return due, held
}

// removalsFailing counts, of each Cluster, what is being deleted and cannot have its data removed.
func removalsFailing(backups []v1alpha1.Backup, clusters []v1alpha1.Cluster) map[types.NamespacedName]int {
	out := map[types.NamespacedName]int{}
	count := func(namespace, name string, all []metav1.Condition, condition string) {
		is := meta.FindStatusCondition(all, condition)
		if is != nil && isFailing(core.Reason(is.Reason)) {
			out[types.NamespacedName{Namespace: namespace, Name: name}]++
		}
	}
	for i := range backups {
		b := &backups[i]
		count(b.Namespace, b.Spec.Cluster.Name, b.Status.Conditions, v1alpha1.ConditionBackupStored)
	}
	for i := range clusters {
		c := &clusters[i]
		count(c.Namespace, c.Name, c.Status.Conditions, v1alpha1.ConditionArchiveStored)
	}
	return out
}

// current are the Backups without those of an earlier Cluster of a name, which hold nothing of
// the present one.
func current(all []v1alpha1.Backup, clusters []v1alpha1.Cluster) []v1alpha1.Backup {
	of := map[types.NamespacedName]*v1alpha1.Cluster{}
	for i := range clusters {
		of[client.ObjectKeyFromObject(&clusters[i])] = &clusters[i]
	}
	var out []v1alpha1.Backup
	for i := range all {
		b := &all[i]
		if !b.IsOfEarlier(of[types.NamespacedName{Namespace: b.Namespace, Name: b.Spec.Cluster.Name}]) {
			out = append(out, *b)
		}
	}
	return out
}

// newest are, of each Cluster, the Backups that ended last of those that are asked for.
func newest(all []v1alpha1.Backup, isOne func(*v1alpha1.Backup) bool) map[types.NamespacedName]*v1alpha1.Backup {
	out := map[types.NamespacedName]*v1alpha1.Backup{}
	for i := range all {
		b := &all[i]
		if !isOne(b) || b.Status.StoppedAt == nil {
			continue
		}
		of := types.NamespacedName{Namespace: b.Namespace, Name: b.Spec.Cluster.Name}
		if known := out[of]; known == nil || known.Status.StoppedAt.Before(b.Status.StoppedAt) {
			out[of] = b
		}
	}
	return out
}

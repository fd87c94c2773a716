package resources

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/layout"
)

func TestServerIDsNeverCollideInAClusterAndAreNeverZero(t *testing.T) {
	for _, uid := range []types.UID{"", "a", "0c9dbd0e-55e5-4ad0-a8f5-29a1e7f8a9a1"} {
		seen := map[uint32]bool{}
		for ordinal := range 10000 {
			id := ServerID(uid, ordinal)
			if id == 0 || seen[id] {
				t.Fatalf("uid %q, ordinal %d: %d", uid, ordinal, id)
			}
			seen[id] = true
		}
	}
	if ServerID("a", 1) == ServerID("b", 1) {
		t.Error("two clusters share a server_id")
	}
	if ServerID("a", 1) != ServerID("a", math.MaxUint32+1) {
		t.Error("it does not wrap around")
	}
}

func TestAClaimKeepsTheServerID(t *testing.T) {
	claim := must[*corev1.PersistentVolumeClaim](t)(VolumeClaim(cluster(t, "minimal"), "db-1", math.MaxUint32))
	if id, ok := ServerIDOf(claim); !ok || id != math.MaxUint32 {
		t.Errorf("%d, %t", id, ok)
	}
	for _, bad := range []string{"", "0", "-1", "x", "4294967296"} {
		claim.Annotations[v1alpha1.AnnotationServerID] = bad
		if id, ok := ServerIDOf(claim); ok {
			t.Errorf("%q was taken for %d", bad, id)
		}
	}
}

func TestOrdinal(t *testing.T) {
	for name, want := range map[string]int{"db-1": 1, "db-12": 12, "db-0": 0, "db-01": 0, "db-": 0, "db-x": 0, "db": 0,
		"db-1-2": 0, "other-1": 0, "db--1": 0, "db-+1": 0} {
		if got, ok := Ordinal("db", name); got != want || ok != (want != 0) {
			t.Errorf("%s: %d, %t", name, got, ok)
		}
	}
}

func TestBeforeThereIsAPrimaryWritesAreRoutedNowhere(t *testing.T) {
	c := cluster(t, "minimal")
	if got := RoutedTo(ReadWriteService(c, "")); got != "" {
		t.Errorf("routed to %q", got)
	}
	if got := RoutedTo(ReadWriteService(c, "db-2")); got != "db-2" {
		t.Errorf("routed to %q", got)
	}
}

// hashCases are changes, and whether they need a restart.
var hashCases = map[string]struct {
	change  func(*v1alpha1.Cluster, *PodOptions)
	restart bool
}{
	"nothing":       {func(*v1alpha1.Cluster, *PodOptions) {}, false},
	"image":         {func(c *v1alpha1.Cluster, _ *PodOptions) { c.Spec.ImageName = "mysql:9.8" }, true},
	"default image": {func(_ *v1alpha1.Cluster, o *PodOptions) { o.DefaultImage = "mysql:9.8" }, true},
	"default image, of a Cluster that has data": {func(c *v1alpha1.Cluster, o *PodOptions) {
		now := metav1.NowMicro()
		c.Status.EstablishedAt, c.Status.Image, o.DefaultImage = &now, o.DefaultImage, "mysql:9.8"
	}, false},
	// see Installer
	"operator image": {func(_ *v1alpha1.Cluster, o *PodOptions) { o.OperatorImage = "cnmsql:v2" }, false},
	"managers in place": {func(c *v1alpha1.Cluster, _ *PodOptions) { c.Spec.InPlaceInstanceManagerUpdates = true },
		false},
	"parameter": {func(c *v1alpha1.Cluster, _ *PodOptions) {
		c.Spec.MySQL.Parameters = map[string]string{"max_connections": "1"}
	}, true},
	"a list of parameters that is empty": {func(c *v1alpha1.Cluster, _ *PodOptions) {
		c.Spec.MySQL.Parameters = map[string]string{}
	}, false},
	"binlog format": {func(c *v1alpha1.Cluster, _ *PodOptions) { c.Spec.MySQL.BinlogFormat = "MIXED" }, true},
	"semi-sync": {func(c *v1alpha1.Cluster, _ *PodOptions) {
		c.Spec.MySQL.SemiSync = &v1alpha1.SemiSyncSpec{Enabled: true}
	}, true},
	"semi-sync that is off": {func(c *v1alpha1.Cluster,
		_ *PodOptions) {
		c.Spec.MySQL.SemiSync = &v1alpha1.SemiSyncSpec{}
	}, false},
	"durability": {func(c *v1alpha1.Cluster, _ *PodOptions) { c.Spec.MinSyncReplicas = new(int32(2)) },
		false},
	"a group's settings, of none": {func(c *v1alpha1.Cluster, _ *PodOptions) {
		c.Spec.Replication.GroupReplication = &v1alpha1.GroupReplicationSpec{Consistency: "AFTER"}
	}, false},
	"instances": {func(c *v1alpha1.Cluster, _ *PodOptions) { c.Spec.Instances = 5 }, false},
	"storage":   {func(c *v1alpha1.Cluster, _ *PodOptions) { c.Spec.Storage.Size = "9Gi" }, false},
	"node selector": {func(c *v1alpha1.Cluster, _ *PodOptions) {
		c.Spec.Affinity.NodeSelector = map[string]string{"a": "b"}
	}, true},
	"archiving": {func(c *v1alpha1.Cluster, _ *PodOptions) {
		c.Spec.Backup = &v1alpha1.BackupDefaults{ObjectStore: &v1alpha1.ObjectStoreSpec{},
			ContinuousArchiving: &v1alpha1.ContinuousArchivingSpec{Enabled: true}}
	}, true},
	"a store for backups": {func(c *v1alpha1.Cluster, _ *PodOptions) {
		c.Spec.Backup = &v1alpha1.BackupDefaults{ObjectStore: &v1alpha1.ObjectStoreSpec{}}
	}, false},
	"what is nothing to a Pod": {func(c *v1alpha1.Cluster, _ *PodOptions) {
		c.Spec.Description, c.Spec.MaxSyncReplicas, c.Spec.EnablePrimaryLease = "d", new(int32(2)), new(false)
		c.Spec.FailoverPolicy, c.Spec.ReadRouting = &v1alpha1.FailoverPolicy{}, &v1alpha1.ReadRoutingSpec{}
		c.Spec.MaxSwitchoverDelay, c.Spec.MaxSwitchoverPause, c.Spec.SmartShutdownTimeout = 7, 7, new(int32(7))
		c.Spec.Managed, c.Spec.Certificates = &v1alpha1.ManagedSpec{}, &v1alpha1.CertificatesSpec{}
		c.Spec.EnablePDB, c.Spec.EnableSuperuserAccess = new(false), true
		c.Spec.ExternalClusters = []v1alpha1.ExternalCluster{{Name: "other"}}
		c.Spec.Replica = &v1alpha1.ReplicaSpec{Source: "other"}
	}, false},
	"what is so anyway": {func(c *v1alpha1.Cluster, _ *PodOptions) {
		c.Spec.Monitoring, c.Spec.Upgrade = &v1alpha1.MonitoringSpec{}, &v1alpha1.FixedUpgrade{}
		c.Spec.NodeMaintenanceWindow, c.Spec.EnvFrom = &v1alpha1.FixedMaintenanceWindow{}, []v1alpha1.Unsupported{}
		c.Spec.Replication.Heartbeat = &v1alpha1.FixedHeartbeat{Enabled: new(false)}
		c.Spec.MySQL.AdditionalConfigFiles = map[string]string{}
	}, false},
	"failover delay": {func(c *v1alpha1.Cluster, _ *PodOptions) { c.Spec.FailoverDelay = 9 }, false},
	"inherited metadata": {func(c *v1alpha1.Cluster, _ *PodOptions) {
		c.Spec.InheritedMetadata = &v1alpha1.InheritedMetadata{Labels: map[string]v1alpha1.LabelValue{"a": "b"}}
	}, false},
}

func TestTheHashChangesWithWhatNeedsARestartAndWithNothingElse(t *testing.T) {
	base := MadeNow(cluster(t, "minimal"), "db-1", options)
	for name, r := range hashCases {
		c, o := cluster(t, "minimal"), options
		r.change(c, &o)
		if got := MadeNow(c, "db-1", o); (got.Spec != base.Spec) != r.restart || got.SameInputs(base) == r.restart {
			t.Errorf("%s: restart is %t, with managers in place %t", name, got.Spec != base.Spec, !got.SameInputs(base))
		}
	}
	if MadeAs(Pod(cluster(t, "minimal"), "db-1", options)) != base {
		t.Error("the Pod does not carry its own hashes")
	}
	if got := Installer(Pod(cluster(t, "minimal"), "db-1", options)); got != options.OperatorImage {
		t.Errorf("its manager is copied from %q", got)
	}
}

func TestTheHashOfAMemberChangesWithTheSettingsOfItsGroup(t *testing.T) {
	c := cluster(t, "minimal")
	c.Spec.Replication = v1alpha1.ReplicationSpec{Mode: v1alpha1.ReplicationGroup,
		GroupReplication: &v1alpha1.GroupReplicationSpec{Consistency: "EVENTUAL"}}
	before := MadeNow(c, "db-1", options)
	c.Spec.Replication.GroupReplication.Consistency = "AFTER"
	if MadeNow(c, "db-1", options) == before {
		t.Error("another consistency would wait for a restart for another reason")
	}
	before = MadeNow(c, "db-1", options)
	c.Spec.Replication.GroupReplication.RecoverTotalOutage = v1alpha1.TotalOutageAutomatic
	c.Spec.Replication.GroupReplication.MultiPrimary = new(false)
	c.Spec.MySQL.SemiSync = &v1alpha1.SemiSyncSpec{Enabled: true} // says nothing in a group
	if MadeNow(c, "db-1", options) != before {
		t.Error("members would be restarted for what does not reach them")
	}
}

func TestBuildersLeaveTheClusterAlone(t *testing.T) {
	c := cluster(t, "full")
	before := c.DeepCopy()
	everything(t, c)
	everything(t, c)
	if diff := cmp.Diff(before, c); diff != "" {
		t.Errorf("the Cluster was changed: %s", diff)
	}
}

func TestNobodyNeedsAffinityWhenItIsOff(t *testing.T) {
	c := cluster(t, "minimal")
	c.Spec.Affinity.EnablePodAntiAffinity = new(false)
	if got := Pod(c, "db-1", options).Spec.Affinity; got != nil {
		t.Errorf("%v", got)
	}
}

func TestASecurityContextReplacesOnlyWhatItNames(t *testing.T) {
	c := cluster(t, "minimal")
	c.Spec.SecurityContext = &corev1.SecurityContext{RunAsUser: new(int64(1001)),
		Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_NICE"}}}
	got := Pod(c, "db-1", options).Spec.Containers[0].SecurityContext
	if *got.RunAsUser != 1001 || got.Capabilities.Drop[0] != "ALL" || !*got.ReadOnlyRootFilesystem {
		t.Errorf("%v", got)
	}
}

func TestLongestNamesFit(t *testing.T) {
	c := cluster(t, "minimal")
	c.Name = strings.Repeat("a", 50)
	for _, name := range []string{
		Names(c.Name).ReplicationSecret(), Names(c.Name).ReadWrite(), InstanceName(c.Name, 999999),
		TLSSecret(InstanceName(c.Name, 999999)),
	} {
		if len(name) > 63 {
			t.Errorf("%s is %d long", name, len(name))
		}
	}
	if host := layout.InstanceHost(InstanceName(c.Name, 9), "shop"); !strings.HasPrefix(host, c.Name) {
		t.Error(host)
	}
}

package operator

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/recovery"
)

// copying is a Cluster that begins with the data of a running server.
func copying() *v1alpha1.Cluster {
	c := recovering(v1alpha1.RecoverySpec{Source: "shop"})
	key := func(name string) *v1alpha1.SecretKeySelector {
		return &v1alpha1.SecretKeySelector{Name: "shop", Key: name}
	}
	c.Spec.ExternalClusters = append(c.Spec.ExternalClusters, v1alpha1.ExternalCluster{Name: "shop",
		ConnectionParameters: map[string]v1alpha1.ConnectionParameter{"host": "shop.example.com", "user": "copier"},
		Password:             key("password"), SSLRootCert: key("ca.crt")})
	return c
}

// TestTheServerThatAClusterBeginsWith holds what an instance is told of it, and that it waits for the Secret.
func TestTheServerThatAClusterBeginsWith(t *testing.T) {
	c := copying()
	a := newAPI(t)
	var no *userError
	err := newPrerequisites(a, a).recovery(t.Context(), c)
	if !errors.As(err, &no) || no.Reason != core.ProblemRecoverySource ||
		!strings.Contains(no.Message, "the Secret shop, which spec.externalClusters names, does not exist") {
		t.Errorf("without the Secret: %v", err)
	}
	a = newAPI(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "ns"},
		Data: map[string][]byte{"password": []byte("hidden"), "ca.crt": []byte("authority")}})
	c.Spec.ExternalClusters[2].ConnectionParameters["sslmode"] = "verify-ca"
	must(t, newPrerequisites(a, a).recovery(t.Context(), c))
	var s corev1.Secret
	must(t, a.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "c-recovery"}, &s))
	var task recovery.Task
	must(t, json.Unmarshal(s.Data[recovery.FileTask], &task))
	want := recovery.Server{Name: "shop", Host: "shop.example.com", Port: 3306, User: "copier", AnyName: true}
	if task.Server == nil || *task.Server != want || task.Cluster != "" {
		t.Errorf("an instance is told of %+v", task)
	}
	if string(s.Data[recovery.FilePassword]) != "hidden" || string(s.Data[recovery.FileAuthority]) != "authority" ||
		len(s.Data) != 3 {
		t.Errorf("and given %v", s.Data)
	}
}

// TestACopiedClusterSaysSo holds the state of before there are data, and that there is no word of backups.
func TestACopiedClusterSaysSo(t *testing.T) {
	c := core.Cluster{FirstData: core.OriginImported}
	if got := c.FirstState(); got != core.StateCloning {
		t.Errorf("its first state is %s", got)
	}
	var s v1alpha1.ClusterStatus
	r := core.Restore{Source: "shop", Stage: core.RestoreCopy, Files: core.Amount{Done: 1, Of: 4}}
	o := core.Observation{Cluster: c, Instances: []core.Instance{{Name: "c-1",
		Report: core.Known(core.Report{Restore: &r}, metav1.Now().Time, metav1.Now().Time)}}}
	describeRestore(&s, aCluster(), o)
	if s.Restore == nil || s.Restore.Source != "shop" || s.Restore.Backup.Percent != "25%" || len(s.Conditions) > 0 {
		t.Errorf("%+v, %v", s.Restore, s.Conditions)
	}
	if s.Cloned {
		t.Error("it is cloned before it is")
	}
	r.Stage = core.RestoreDone
	if describeRestore(&s, aCluster(), o); !s.Cloned {
		t.Error("it is not cloned once it is")
	}
}

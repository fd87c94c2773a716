package operator

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/internal/resources"
)

// TestAPodIsNotMadeWithoutTheSecretsThatItMounts holds that each is looked at by itself, and one of
// somebody else's is never mounted.
func TestAPodIsNotMadeWithoutTheSecretsThatItMounts(t *testing.T) {
	c := aCluster()
	names := resources.NeededSecrets(c, "c-1")
	if want := "c-1-tls c-root c-replication c-control c-app"; strings.Join(names, " ") != want {
		t.Fatalf("the Pod mounts %q, want %q", names, want)
	}
	for _, name := range names {
		server := newAPI(t)
		p := newPrerequisites(server, server)
		for _, other := range names {
			if other != name {
				s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: other,
					OwnerReferences: aPod("c-1", "p", "n").OwnerReferences}}
				must(t, server.Create(t.Context(), s))
			}
		}
		if err := p.secretsOf(t.Context(), c, "c-1"); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is missing: %v", name, err)
		}
		must(t, server.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}))
		if err := p.secretsOf(t.Context(), c, "c-1"); err == nil || !strings.Contains(err.Error(), "belong") {
			t.Errorf("%s is somebody else's: %v", name, err)
		}
	}
}

// giveAccounts makes the Secrets of the Cluster's accounts, without which no Pod is made.
func giveAccounts(t *testing.T, server client.Client) {
	t.Helper()
	for _, name := range resources.NeededSecrets(aCluster(), "c-1")[1:] {
		must(t, server.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name,
			OwnerReferences: aPod("c-1", "p", "n").OwnerReferences}}))
	}
}

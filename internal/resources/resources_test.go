package resources

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/pki"
)

var update = flag.Bool("update", false, "write the golden files again")

var options = PodOptions{OperatorImage: "cnmsql:v1", DefaultImage: "mysql:9.7", ServerID: 4242}

// chance is a stream that looks like chance and is always the same.
func chance() io.Reader {
	var out []byte
	for sum := sha256.Sum256(nil); len(out) < 4096; sum = sha256.Sum256(sum[:]) {
		out = append(out, sum[:]...)
	}
	return bytes.NewReader(out)
}

func cluster(t *testing.T, name string) *v1alpha1.Cluster {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".cluster.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c := &v1alpha1.Cluster{}
	if err := yaml.UnmarshalStrict(text, c); err != nil {
		t.Fatal(err)
	}
	return c
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// everything is each object that is made for a cluster and its first instance.
func everything(t *testing.T, c *v1alpha1.Cluster) []runtime.Object {
	secret := must[*corev1.Secret](t)
	var objects []runtime.Object
	for _, s := range Services(c, "db-1") {
		objects = append(objects, s)
	}
	objects = append(objects,
		secret(RootSecret(c, nil, chance())), secret(ReplicationSecret(c, nil, chance())),
		secret(ControlSecret(c, nil, chance())), secret(AppSecret(c, nil, nil, []byte("the authority"), chance())),
		CASecret(c, pki.Bundle{CA: []byte("ca"), Cert: []byte("cert"), Key: []byte("key")}),
	)
	if lease := Lease(c); lease != nil {
		objects = append(objects, lease)
	}
	if budget := DisruptionBudget(c); budget != nil {
		objects = append(objects, budget)
	}
	return append(objects,
		ServiceAccount(c, "db-1"), Role(c, "db-1"), RoleBinding(c, "db-1"), InstanceService(c, "db-1"),
		InstanceTLSSecret(c, "db-1", pki.Bundle{CA: []byte("ca"), Cert: []byte("cert"), Key: []byte("key")}),
		must[*corev1.PersistentVolumeClaim](t)(VolumeClaim(c, "db-1", 4242)),
		Pod(c, "db-1", options))
}

func TestObjectsOfAClusterAreAsInTheGoldenFiles(t *testing.T) {
	for _, name := range []string{"minimal", "full", "group"} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			for _, obj := range everything(t, cluster(t, name)) {
				u, err := ForApply(obj)
				if err != nil {
					t.Fatal(err)
				}
				got.WriteString("---\n")
				got.Write(must[[]byte](t)(yaml.Marshal(u.Object)))
			}
			golden(t, filepath.Join("testdata", name+".golden.yaml"), got.Bytes())
		})
	}
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-golden +built). If that is meant, run: go test ./internal/resources -update\n%s",
			path, diff)
	}
}

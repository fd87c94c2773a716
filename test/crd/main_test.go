package crd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"cnmsql.co/api/v1alpha1"
)

const chart = "../../charts/cnmsql"

// server is the API server's configuration; nil when there is none to test.
var server *rest.Config

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	bin := os.Getenv("CNMSQL_KUBE_BIN")
	if bin == "" {
		return m.Run()
	}
	env := &envtest.Environment{
		BinaryAssetsDirectory:    bin,
		CRDDirectoryPaths:        []string{filepath.Join(chart, "files")},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: 2 * time.Minute,
		ControlPlaneStopTimeout:  time.Minute,
	}
	conf, err := env.Start()
	if err == nil {
		server = conf
		err = prepare()
	}
	defer func() { _ = env.Stop() }()
	if err != nil {
		fmt.Fprintf(os.Stderr, "starting the API server from %s: %v\n", bin, err)
		return 1
	}
	return m.Run()
}

// prepare installs the chart's policies, and returns when they are in force.
func prepare() error {
	if err := v1alpha1.AddToScheme(scheme.Scheme); err != nil {
		return err
	}
	c, err := client.New(server, client.Options{})
	if err != nil {
		return err
	}
	for _, name := range []string{"policy-parameters.yaml", "policy-instance-status.yaml", "policy-promotion.yaml",
		"policy-instance-pod.yaml", "policy-pod-labels.yaml", "policy-lease.yaml", "policy-lease-epoch.yaml",
		"policy-lease-writers.yaml", "policy-secret-size.yaml",
		"policy-group.yaml", "policy-security.yaml", "policy-deletion.yaml", "policy-backup-status.yaml"} {
		if err := install(c, filepath.Join(chart, "templates", name)); err != nil {
			return err
		}
	}
	return awaitPolicy(c)
}

func install(c client.Client, path string) error {
	objects, err := read(path)
	if err != nil {
		return err
	}
	for _, obj := range objects {
		if err := c.Create(context.Background(), obj); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// unconditional: what a value of the chart may turn off is tested as it is by default.
var unconditional = regexp.MustCompile(`(?m)^\{\{.*\}\}\n`)

// read decodes the documents of a file.
func read(path string) ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, doc := range strings.Split("\n"+unconditional.ReplaceAllString(string(text), ""), "\n---\n") {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &obj.Object); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if len(obj.Object) > 0 {
			out = append(out, obj)
		}
	}
	return out, nil
}

// awaitPolicy asks until the policies refuse something: the API server takes a
// while to see new ones.
func awaitPolicy(c client.Client) error {
	var err error
	for range 300 {
		if err = policiesInForce(c); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("the policies are not in force: %w", err)
}

func policiesInForce(c client.Client) error {
	ctx := context.Background()
	bad, err := manifest("probe", "mysql: {parameters: {port: '1'}}")
	if err != nil {
		return err
	}
	if err := c.Create(ctx, bad, client.DryRunAll); err == nil {
		return fmt.Errorf("cnmsql-cluster-parameters refuses nothing")
	}
	good, err := manifest("probe", "{}")
	if err != nil {
		return err
	}
	if err := c.Create(ctx, good); err != nil {
		return err
	}
	defer func() { _ = c.Delete(ctx, good) }()
	as, err := instanceClient("probe-1")
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(good.Object, "x", "status", "phase"); err != nil {
		return err
	}
	if err := as.Status().Update(ctx, good, client.DryRunAll); err == nil {
		return fmt.Errorf("cnmsql-instance-status refuses nothing")
	} else if !strings.Contains(err.Error(), "cnmsql-instance-status") {
		return err
	}
	if err := backupPolicyInForce(c); err != nil {
		return err
	}
	return groupPolicyInForce(c, good)
}

func backupPolicyInForce(c client.Client) error {
	ctx := context.Background()
	b := &v1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Name: "probe", Namespace: metav1.NamespaceDefault}}
	b.Spec.Cluster.Name = "probe"
	if err := c.Create(ctx, b); err != nil {
		return err
	}
	defer func() { _ = c.Delete(ctx, b) }()
	job, err := saClient("probe-backup", "system:masters")
	if err != nil {
		return err
	}
	if err := job.Status().Patch(ctx, b, merge(`{"status":{"backupId":"x"}}`), client.DryRunAll); err == nil {
		return fmt.Errorf("cnmsql-backup-status refuses nothing")
	} else if !strings.Contains(err.Error(), "cnmsql-backup-status") {
		return err
	}
	return nil
}

func groupPolicyInForce(c client.Client, u *unstructured.Unstructured) error {
	name := func(name string, opts ...client.SubResourcePatchOption) error {
		patch := fmt.Sprintf(`{"status":{"groupReplication":{"groupName":%q,"hasQuorum":false}}}`, name)
		return c.Status().Patch(context.Background(), u, merge(patch), opts...)
	}
	if err := name("a"); err != nil {
		return err
	}
	if err := name("b", client.DryRunAll); err == nil {
		return fmt.Errorf("cnmsql-group refuses nothing")
	} else if !strings.Contains(err.Error(), "cnmsql-group") {
		return err
	}
	return nil
}

// instanceClient acts as an instance does. It is in system:masters besides, for
// it is the policy that is tested and not RBAC.
func instanceClient(instance string) (client.Client, error) {
	return saClient(instance, "system:masters")
}

// saClient is a client of a ServiceAccount of the namespace default, in more groups besides.
func saClient(name string, groups ...string) (client.Client, error) {
	conf := rest.CopyConfig(server)
	conf.Impersonate = rest.ImpersonationConfig{
		UserName: fmt.Sprintf("system:serviceaccount:%s:%s", metav1.NamespaceDefault, name),
		Groups: append([]string{"system:serviceaccounts", "system:serviceaccounts:" + metav1.NamespaceDefault,
			"system:authenticated"}, groups...),
	}
	return client.New(conf, client.Options{})
}

// editor is a client of a user who may edit Clusters and no more.
func editor(t *testing.T) client.Client {
	return granted(t, "editor", "mysql.cnmsql.co", "clusters", "clusters/status")
}

// granted is a client of a user who may do everything to some resources, and no more.
func granted(t *testing.T, user, group string, what ...string) client.Client {
	t.Helper()
	return grantedVerbs(t, user, group, what, "*")
}

// grantedVerbs is one of a user who may do some things to them.
func grantedVerbs(t *testing.T, user, group string, what []string, verbs ...string) client.Client {
	t.Helper()
	c, ctx := api(t), context.Background()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{group}, Resources: what, Verbs: verbs}}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}}
	for _, obj := range []client.Object{role, binding} {
		if err := c.Create(ctx, obj); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Delete(ctx, obj) })
	}
	conf := rest.CopyConfig(server)
	conf.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	out, err := client.New(conf, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// api is a client, or the reason to skip.
func api(t *testing.T) client.Client {
	t.Helper()
	if server == nil {
		t.Skip("CNMSQL_KUBE_BIN does not name a directory with etcd, kube-apiserver and kubectl")
	}
	c, err := client.New(server, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// manifest is a minimal Cluster with more of a spec, as YAML, merged into it.
func manifest(name, spec string) (*unstructured.Unstructured, error) {
	fields := map[string]any{}
	if err := yaml.Unmarshal([]byte(spec), &fields); err != nil {
		return nil, err
	}
	if _, ok := fields["storage"]; !ok {
		fields["storage"] = map[string]any{"size": "1Gi"}
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": fields}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Cluster"))
	u.SetNamespace(corev1.NamespaceDefault)
	u.SetName(name)
	return u, nil
}

func cluster(t *testing.T, name, spec string) *unstructured.Unstructured {
	t.Helper()
	u, err := manifest(name, spec)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// judge fails unless err says what is wanted, or is nil when nothing is.
func judge(t *testing.T, err error, refused string) {
	t.Helper()
	switch {
	case refused == "" && err != nil:
		t.Errorf("refused: %v", err)
	case refused != "" && err == nil:
		t.Errorf("accepted, but should say: %s", refused)
	case refused != "" && !strings.Contains(err.Error(), refused):
		t.Errorf("got:  %v\nwant: %s", err, refused)
	}
}

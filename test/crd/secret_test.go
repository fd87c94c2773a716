package crd

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
)

// The operator has all of them in memory.
func TestASecretThatNamesAClusterIsSmall(t *testing.T) {
	installed(t)
	ctx, admin, operator := context.Background(), api(t), as(t, "cnmsql-system", "cnmsql-operator")
	user := granted(t, "secret-user", "", "secrets")
	named := map[string]string{v1alpha1.LabelCluster: "sized"}
	secret := func(labels map[string]string, kib int) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "sized", Namespace: metav1.NamespaceDefault,
			Labels: labels}, Data: map[string][]byte{"password": make([]byte, kib<<10)}}
	}
	noted := secret(named, 1)
	noted.Annotations = map[string]string{"note": strings.Repeat("x", 64<<10)}
	text := secret(named, 0)
	text.StringData = map[string]string{"text": strings.Repeat("x", 65<<10)}
	const refused = "holds at most 64 KiB"
	for name, r := range map[string]struct {
		by      client.Client
		secret  *corev1.Secret
		refused string
	}{
		"a password":                {user, secret(named, 1), ""},
		"one of some size":          {user, secret(named, 63), ""},
		"one too large":             {user, secret(named, 65), refused},
		"as text":                   {user, text, refused},
		"by its annotations":        {user, noted, refused},
		"one that names no Cluster": {user, secret(nil, 900), ""},
		"by the operator":           {operator, secret(named, 65), ""},
		"by an administrator":       {admin, secret(named, 65), ""},
	} {
		t.Run(name, func(t *testing.T) { judge(t, r.by.Create(ctx, r.secret, client.DryRunAll), r.refused) })
	}
	large := secret(nil, 65)
	judge(t, user.Create(ctx, large), "")
	t.Cleanup(func() { _ = admin.Delete(ctx, large) })
	label := merge(`{"metadata":{"labels":{"` + v1alpha1.LabelCluster + `":"sized"}}}`)
	judge(t, user.Patch(ctx, large.DeepCopy(), label), refused)
	judge(t, admin.Patch(ctx, large.DeepCopy(), label), "")
	judge(t, user.Patch(ctx, large.DeepCopy(), merge(`{"metadata":{"labels":{"team":"db"}}}`)), "")
	judge(t, user.Patch(ctx, large.DeepCopy(), merge(`{"data":{"more":"eA=="}}`)), refused)
	judge(t, user.Patch(ctx, large.DeepCopy(), merge(`{"metadata":{"labels":{"`+v1alpha1.LabelCluster+`":null}}}`)), "")
}

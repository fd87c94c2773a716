package crd

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/pki"
	"cnmsql.co/internal/resources"
)

// taken is what the operator writes before it makes the Job.
const taken = `phase: Running
method: clone
instanceName: db-3
jobName: b-backup
backupId: 20261126T140000Z-12345678
destinationPath: s3://backups/db
objectStore: ` + somewhere + `
startedAt: "2026-11-26T14:00:00Z"
queuedUntil: "2026-11-26T14:00:00Z"
`

const (
	notHeld  = "it may not write status."
	asGoDoes = "must be as 2026-11-26T14:00:00Z"
)

// jobsWrites are what a Job writes, or what its token could, and how that is refused.
var jobsWrites = map[string]struct{ phase, write, refused string }{
	"its progress": {"Running", "progress: {bytes: 1, totalBytes: 9, percent: 11%, bytesPerSecond: 1, " +
		"expectedEnd: '2026-11-26T15:00:00Z'}", ""},
	"that it is complete": {"Running", "{phase: Completed, serverVersion: 8.4.3, sha256: ab, beginGTID: '', endGTID: " +
		"'8f1c0000-0000-0000-0000-000000000000:1-9', size: 9, storedSize: 4, encryptedTo: age1, startedAt: " +
		"'2026-11-26T14:00:09Z', stoppedAt: '2026-11-26T14:10:00Z'}", ""},
	"that there is none": {"Running", "{phase: Failed, reason: NotTaken, error: the store is full, stoppedAt: " +
		"'2026-11-26T14:10:00Z'}", ""},
	"nothing new": {"Failed", "{phase: Failed, jobName: b-backup}", ""},
	"what has expired": {"Completed", "retention: {ranAt: '2026-11-26T15:00:00Z', removedBackups: [a], keptSince: " +
		"'2026-10-26T15:00:00Z'}", ""},
	"what it merged": {"Completed", "merging: {mergedParts: 9, bundles: 1}", ""},

	"another Secret": {"Running", "objectStore: {bucket: mine, endpoint: 'https://evil.example.com', credentials: " +
		"{accessKeyId: {name: paid-ca, key: tls.key}, secretAccessKey: {name: db-root, key: password}}}",
		notHeld + "objectStore"},
	"one Secret more": {"Running", "objectStore: {bucket: backups, endpoint: 'https://s3.example.com', credentials: " +
		"{accessKeyId: {name: s, key: id}, secretAccessKey: {name: s, key: key}, " +
		"sessionToken: {name: paid-ca, key: tls.key}}}", notHeld + "objectStore"},
	"no store":              {"Running", "objectStore: null", notHeld + "objectStore"},
	"another's backup":      {"Running", "backupId: 20260101T000000Z-anothers", notHeld + "backupId"},
	"no backup":             {"Running", "backupId: null", notHeld + "backupId"},
	"another place":         {"Running", "destinationPath: s3://backups/paid", notHeld + "destinationPath"},
	"another instance":      {"Running", "instanceName: paid-1", notHeld + "instanceName"},
	"another's Job":         {"Running", "jobName: paid-backup", notHeld + "jobName"},
	"no Job":                {"Running", "jobName: null", notHeld + "jobName"},
	"another method":        {"Running", "method: any", notHeld + "method"},
	"that it waited longer": {"Running", "queuedUntil: '2027-11-26T14:00:00Z'", notHeld + "queuedUntil"},
	"that there was no replica": {"Running", "noInstanceSince: '2026-11-26T14:00:00Z'",
		notHeld + "noInstanceSince"},
	"a condition": {"Running", "conditions: [{type: Stored, status: 'False', reason: Removed, message: m, " +
		"lastTransitionTime: '2026-11-26T14:00:00Z'}]", notHeld + "conditions"},
	"one beside what it may": {"Running", "{phase: Completed, backupId: x}", notHeld + "backupId"},

	"that it is taken again":    {"Running", "phase: Pending", "to Completed or Failed only"},
	"no phase":                  {"Running", "phase: null", "to Completed or Failed only"},
	"before it runs":            {"Pending", "error: a", notHeld + "error"},
	"an expiry of no backup":    {"Running", "retention: {ranAt: '2026-11-26T15:00:00Z'}", notHeld + "retention"},
	"that it failed after all":  {"Completed", "phase: Failed", notHeld + "phase"},
	"that it runs again":        {"Completed", "phase: Running", notHeld + "phase"},
	"another sum of a complete": {"Completed", "sha256: cd", notHeld + "sha256"},
	"that it succeeded instead": {"Failed", "phase: Completed", notHeld + "phase"},
	"an expiry of a failed one": {"Failed", "retention: {ranAt: '2026-11-26T15:00:00Z'}", notHeld + "retention"},

	"letters in lower case": {"Running", "startedAt: '2026-11-26t14:00:00z'", asGoDoes},
	"the year 0":            {"Running", "stoppedAt: '0000-01-01T00:00:00Z'", asGoDoes},
	"another zone":          {"Running", "stoppedAt: '2026-11-26T14:00:00+99:99'", asGoDoes},
	"a part of a second":    {"Running", "startedAt: '2026-11-26T14:00:00x123Z'", asGoDoes},
	"a strange end": {"Running", "progress: {bytes: 1, totalBytes: 9, percent: 11%, bytesPerSecond: 1, expectedEnd: " +
		"'2026-11-26t15:00:00z'}", asGoDoes},
	"a strange run": {"Completed", "retention: {ranAt: '2026-11-26t15:00:00z'}", asGoDoes},
	"a strange bound": {"Completed", "retention: {ranAt: '2026-11-26T15:00:00Z', keptSince: " +
		"'2026-11-26t15:00:00z'}", asGoDoes},
	"a day that is none": {"Running", "startedAt: '2026-02-30T14:00:00Z'", "status.startedAt"},
	"a number that is big": {"Completed", "retention: {ranAt: '2026-11-26T15:00:00Z', removedUnfinished: " +
		"3000000000}", "removedUnfinished"},
	"a size that is big": {"Running", "size: 1e30", "status.size"},
}

// waysToWrite are those in which a status is written.
var waysToWrite = map[string]func(context.Context, client.Client, *unstructured.Unstructured, map[string]any) error{
	"merge patch": func(ctx context.Context, as client.Client, b *unstructured.Unstructured, s map[string]any) error {
		return as.Status().Patch(ctx, b, merge(asJSON(map[string]any{"status": s})))
	},
	"JSON patch": func(ctx context.Context, as client.Client, b *unstructured.Unstructured, s map[string]any) error {
		var ops []map[string]any
		for k, v := range s {
			op := map[string]any{"op": "add", "path": "/status/" + k, "value": v}
			if v == nil {
				op = map[string]any{"op": "remove", "path": "/status/" + k}
			}
			ops = append(ops, op)
		}
		return as.Status().Patch(ctx, b, client.RawPatch(types.JSONPatchType, []byte(asJSON(ops))))
	},
	"apply": func(ctx context.Context, as client.Client, b *unstructured.Unstructured, s map[string]any) error {
		u := &unstructured.Unstructured{Object: map[string]any{"status": s}}
		u.SetGroupVersionKind(b.GroupVersionKind())
		u.SetNamespace(b.GetNamespace())
		u.SetName(b.GetName())
		return as.Status().Patch(ctx, b, client.RawPatch(types.ApplyPatchType, []byte(asJSON(u.Object))),
			client.ForceOwnership, client.FieldOwner("job"))
	},
	"update": func(ctx context.Context, as client.Client, b *unstructured.Unstructured, s map[string]any) error {
		now := b.DeepCopy()
		status := now.Object["status"].(map[string]any)
		maps.Copy(status, s)
		maps.DeleteFunc(status, func(_ string, v any) bool { return v == nil })
		return as.Status().Update(ctx, now)
	},
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func inYAML(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

// backupIn is the Backup b with the status of one that is taken, and in a phase.
func backupIn(t *testing.T, phase string) *unstructured.Unstructured {
	t.Helper()
	c, ctx := api(t), context.Background()
	b := object(t, "Backup", "b", "{cluster: {name: db}}")
	if err := c.Create(ctx, b); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(ctx, b) })
	status := inYAML(t, taken)
	status["phase"] = phase
	if err := c.Status().Patch(ctx, b, merge(asJSON(map[string]any{"status": status}))); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAJobTellsWhatCameOfItsBackupAndNoMore(t *testing.T) {
	api(t)
	as, err := saClient("b-backup", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range jobsWrites {
		for way, write := range waysToWrite {
			status := inYAML(t, r.write)
			removes := strings.Contains(r.write, ": null")
			if way == "apply" && removes {
				continue // what one does not have is not in it
			}
			t.Run(name+" by "+way, func(t *testing.T) {
				judge(t, write(context.Background(), as, backupIn(t, r.phase), status), r.refused)
				var all v1alpha1.BackupList
				if err := api(t).List(context.Background(), &all); err != nil {
					t.Errorf("the operator's list of all Backups: %v", err)
				}
				for i := range all.Items {
					if err := all.Items[i].Unread(); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}

// TestTheOperatorAndAnAdministratorWriteAllOfABackup: who may update the status is no Job.
func TestTheOperatorAndAnAdministratorWriteAllOfABackup(t *testing.T) {
	operator := granted(t, "backup-operator", v1alpha1.GroupVersion.Group, "backups/status")
	ofTwo, err := saClient("b", "system:masters") // the Job of a Backup has -backup behind
	if err != nil {
		t.Fatal(err)
	}
	for who, as := range map[string]client.Client{"operator": operator, "ServiceAccount b": ofTwo} {
		for way, write := range waysToWrite {
			t.Run(who+" by "+way, func(t *testing.T) {
				b := backupIn(t, "Pending")
				judge(t, write(context.Background(), as, b, inYAML(t, "{phase: Running, backupId: x, jobName: c}")), "")
			})
		}
	}
}

// TestAJobWithItsRole: what the API server says to a Job with exactly the Role that the operator
// makes, of its own Backup and of another; and to somebody who may patch the status of all.
func TestAJobWithItsRole(t *testing.T) {
	c, ctx, b := api(t), context.Background(), backupIn(t, "Running")
	other := object(t, "Backup", "other", "{cluster: {name: db}}")
	cl := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "default"}}
	typed := &v1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "default", UID: b.GetUID()}}
	objs := []client.Object{other}
	for _, obj := range resources.BackupObjects(cl, typed, map[string][]byte{}, pki.Bundle{}) {
		switch obj.(type) {
		case *rbacv1.Role, *rbacv1.RoleBinding:
			objs = append(objs, obj.(client.Object))
		}
	}
	for _, obj := range objs {
		if err := c.Create(ctx, obj); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Delete(ctx, obj) })
	}
	if err := c.Status().Patch(ctx, other, merge(`{"status":{"phase":"Running"}}`)); err != nil {
		t.Fatal(err)
	}
	job, err := saClient(resources.BackupJobName("b"))
	if err != nil {
		t.Fatal(err)
	}
	patches := grantedVerbs(t, "patches", v1alpha1.GroupVersion.Group, []string{"backups/status"}, "patch", "get")
	said, theft := inYAML(t, "error: a"), inYAML(t, "backupId: x")
	for way, write := range waysToWrite {
		mine, others, many := "", `cannot patch resource "backups/status"`, notHeld+"backupId"
		if way == "update" {
			mine = `cannot update resource "backups/status"`
			others, many = mine, mine
		}
		if err := c.Get(ctx, client.ObjectKeyFromObject(b), b); err != nil {
			t.Fatal(err)
		}
		judge(t, write(ctx, job, b.DeepCopy(), said), mine)
		judge(t, write(ctx, job, b.DeepCopy(), theft), many)
		judge(t, write(ctx, job, other.DeepCopy(), said), others)
		judge(t, write(ctx, patches, b.DeepCopy(), theft), many)
		judge(t, write(ctx, patches, other.DeepCopy(), theft), many)
	}
}

package crd

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/resources"
)

const (
	groupA = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
	groupB = "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb"
)

func TestRulesForANewGroup(t *testing.T) {
	c := api(t)
	for name, r := range map[string]struct{ spec, refused string }{
		"mode alone":                  {"{instances: 3, replication: {mode: groupReplication}}", ""},
		"an even number of instances": {"{instances: 4, replication: {mode: groupReplication}}", ""},
		"one instance":                {"{instances: 1, replication: {mode: groupReplication}}", ""},
		"no instance": {"{instances: 0, replication: {mode: groupReplication}}",
			"should be greater than or equal to 1"},
		"everything": {"{instances: 3, replication: {mode: groupReplication, " +
			"groupReplication: {consistency: AFTER, exitStateAction: ABORT_SERVER, autoRejoinTries: 0, groupName: " +
			groupA + ", memberExpelTimeoutSeconds: 5, unreachableMajorityTimeoutSeconds: 60, recoverTotalOutage: " +
			"Automatic}}}", ""},
		"groupReplication without the mode": {"replication: {groupReplication: {consistency: EVENTUAL}}",
			"spec.replication.groupReplication needs spec.replication.mode: groupReplication"},
		"groupReplication in the other mode": {"replication: {mode: async, groupReplication: {}}",
			"spec.replication.groupReplication needs spec.replication.mode: groupReplication"},
		"with semi-sync": {"{instances: 3, replication: {mode: groupReplication}, mysql: " +
			"{semiSync: {enabled: true, dataDurability: required, timeoutMillis: 1000}}}", ""},
		"with acknowledgements": {"{instances: 3, minSyncReplicas: 1, maxSyncReplicas: 2, replication: {mode: " +
			"groupReplication}}", ""},
		"with a majority of few": {"{instances: 5, maxSyncReplicas: 1, replication: {mode: groupReplication}, " +
			"mysql: {semiSync: {enabled: true, dataDurability: quorum}}}", ""},
		"with more acknowledgements than": {"{instances: 3, minSyncReplicas: 3, replication: {mode: " +
			"groupReplication}}", "lower minSyncReplicas or raise instances"},
		"with statements in binary logs": {"{replication: {mode: groupReplication}, mysql: {binlogFormat: MIXED}}",
			"spec.mysql.binlogFormat must be ROW with spec.replication.mode groupReplication"},
		"with rows in binary logs": {"{replication: {mode: groupReplication}, mysql: {binlogFormat: ROW}}",
			""},
		"with a delay of failovers": {"{instances: 3, failoverDelay: 5, replication: {mode: " +
			"groupReplication}}", ""},
		"with bounds of failovers": {"{instances: 3, failoverPolicy: {maxTransactionsBehind: 5}, " +
			"replication: {mode: groupReplication}}", ""},
		"unknown consistency": {"replication: {mode: groupReplication, groupReplication: " +
			"{consistency: STRONG}}", "spec.replication.groupReplication.consistency"},
		"unknown exit": {"replication: {mode: groupReplication, groupReplication: " +
			"{exitStateAction: EXPLODE}}", "spec.replication.groupReplication.exitStateAction"},
		"fewer tries than none": {"replication: {mode: groupReplication, groupReplication: " +
			"{autoRejoinTries: -1}}", "spec.replication.groupReplication.autoRejoinTries"},
		"a word that nobody knows": {"replication: {mode: groupReplication, groupReplication: " +
			"{recoverTotalOutage: Always}}", "spec.replication.groupReplication.recoverTotalOutage"},
		"a name that is no UUID": {"replication: {mode: groupReplication, groupReplication: {groupName: shop}}", "spec.replication.groupReplication.groupName"},
		"a parameter of the group": {"{replication: {mode: groupReplication}, mysql: {parameters: " +
			"{group_replication_bootstrap_group: 'ON'}}}", "group_replication_bootstrap_group is not yours to set"},
		"multi-primary by a parameter": {"{replication: {mode: groupReplication}, mysql: {parameters: " +
			"{loose-group_replication_single_primary_mode: 'OFF'}}}", "loose-group_replication_single_primary_mode " +
			"is not yours to set"},
	} {
		t.Run(name, func(t *testing.T) {
			u := cluster(t, "new-group", r.spec)
			judge(t, c.Create(context.Background(), u, client.DryRunAll, client.FieldValidation("Strict")), r.refused)
		})
	}
}

// TestSeveralPrimariesAreRefusedForEveryClient: dropped in silence, the wish would become a
// group in which all members but one refuse writes.
func TestSeveralPrimariesAreRefusedForEveryClient(t *testing.T) {
	c := api(t)
	for fields, refused := range map[string]string{
		"multiPrimary: true": "spec.replication.groupReplication.multiPrimary is not supported: a " +
			"group has one primary",
		"singlePrimaryMode: false": "spec.replication.groupReplication.singlePrimaryMode cannot be false",
		"enforceUpdateEverywhereChecks: true": "spec.replication.groupReplication.enforceUpdateEverywhereChecks is " +
			"not supported",
		"multiPrimary: [a]": "must be of type boolean",
		"multiPrimary: false, singlePrimaryMode: true, enforceUpdateEverywhereChecks: false": "",
	} {
		t.Run(fields, func(t *testing.T) {
			u := cluster(t, "lax-group", "{instances: 3, replication: {mode: groupReplication, groupReplication: {"+
				fields+"}}}")
			judge(t, c.Create(context.Background(), u, client.DryRunAll, client.FieldValidation("Ignore")), refused)
		})
	}
}

func TestRulesForAChangeOfAGroup(t *testing.T) {
	c := api(t)
	const group, named = "{instances: 3, replication: {mode: groupReplication}}", "{instances: 3, replication: " +
		"{mode: groupReplication, groupReplication: {groupName: " + groupA + "}}}"
	for name, r := range map[string]struct{ before, after, refused string }{
		"into a group": {"instances: 3", group, "spec.replication.mode cannot be changed"},
		"out of a group": {group, "{instances: 3, replication: {mode: async}}",
			"spec.replication.mode cannot be changed"},
		"out of a group by silence": {group, "instances: 3", "spec.replication.mode cannot be changed"},
		"name kept": {named, "{instances: 5, replication: {mode: groupReplication, groupReplication: " +
			"{groupName: " + groupA + ", consistency: AFTER}}}", ""},
		"name changed": {named, "{instances: 3, replication: {mode: groupReplication, groupReplication: " +
			"{groupName: " + groupB + "}}}", "groupName cannot be changed once the Cluster exists"},
		"name added": {group, named, "groupName cannot be changed once the Cluster exists"},
		"name removed": {named,
			"{instances: 3, replication: {mode: groupReplication, groupReplication: {}}}",
			"groupName cannot be changed once the Cluster exists"},
		"name removed with all": {named, group, "groupName cannot be changed once the Cluster exists"},
		"settings changed": {group, "{instances: 3, replication: {mode: groupReplication, groupReplication: " +
			"{memberExpelTimeoutSeconds: 10}}}", ""},
		"scaled": {group, "{instances: 1, replication: {mode: groupReplication}}", ""},
		"what has no effect is set later": {group, "{instances: 3, failoverDelay: 1, replication: {mode: " +
			"groupReplication}, mysql: {semiSync: {enabled: true}}}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			u := cluster(t, "change-group", r.before)
			if err := c.Create(ctx, u); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Delete(ctx, u) })
			after := cluster(t, "change-group", r.after)
			after.SetResourceVersion(u.GetResourceVersion())
			judge(t, c.Update(ctx, after, client.DryRunAll), r.refused)
		})
	}
}

// seen is what the operator has published of a group.
const seen = `{"status":{"phase":"Healthy","currentPrimary":"db-1","targetPrimary":"db-2","primaryEpoch":3,
	"promotion":{"epoch":3,"instance":"db-2","proof":"ManagerFenced","grantedAt":"2026-01-01T00:00:00.000000Z"},
	"groupReplication":{"groupName":"` + groupA + `","bootstrapped":true,"hasQuorum":true,"viewId":"v:1","observedViewMax":3,"primaryMember":"db-1"}}}`

// Of an asynchronous cluster, the same instance might write the first of these.
func TestAMemberOfAGroupMayWriteNoStatusAtAll(t *testing.T) {
	for name, r := range map[string]struct{ as, write, refused string }{
		"that it became primary": {"db-2",
			`{"status":{"currentPrimary":"db-2","currentPrimaryTimestamp":"2026-01-01T00:00:01.000000Z"}}`,
			"db-2 is a member of a group and may not write the status"},
		"the time of it": {"db-2",
			`{"status":{"currentPrimaryTimestamp":"2026-01-01T00:00:01.000000Z"}}`, "may not write the status"},
		"another as primary": {"db-2", `{"status":{"currentPrimary":"db-3"}}`, "may not write the status"},
		"a quorum": {"db-1", `{"status":{"groupReplication":{"hasQuorum":false}}}`,
			"may not write the status"},
		"the primary of the group": {"db-1", `{"status":{"groupReplication":{"primaryMember":"db-3"}}}`,
			"may not write the status"},
		"another view": {"db-1", `{"status":{"groupReplication":{"viewId":"v:9"}}}`,
			"may not write the status"},
		"a wish":                         {"db-3", `{"status":{"targetPrimary":"db-3"}}`, "may not write the status"},
		"a removal":                      {"db-3", `{"status":{"phase":null}}`, "may not write the status"},
		"nothing new":                    {"db-3", `{"status":{"phase":"Healthy"}}`, ""},
		"an instance of another cluster": {"db-x-1", `{"status":{"phase":"Degraded"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			u := groupWithStatus(t, seen)
			as, err := instanceClient(r.as)
			if err != nil {
				t.Fatal(err)
			}
			judge(t, as.Status().Patch(context.Background(), u, merge(r.write)), r.refused)
		})
	}
}

// Nobody is exempt: the callers of this test may do everything, and one of them is the operator.
func TestABootstrappedGroupStaysSoAndKeepsItsNameForEveryCaller(t *testing.T) {
	installed(t)
	const again, other = "bootstrapped is true and stays so", "status.groupReplication.groupName cannot be changed"
	callers := map[string]client.Client{"admin": api(t), "operator": as(t, "cnmsql-system", "cnmsql-operator")}
	for name, r := range map[string]struct{ before, write, refused string }{
		"made again":            {seen, `{"status":{"groupReplication":{"bootstrapped":false}}}`, again},
		"made again by silence": {seen, `{"status":{"groupReplication":{"bootstrapped":null}}}`, again},
		"forgotten":             {seen, `{"status":{"groupReplication":null}}`, again},
		"forgotten with all":    {seen, `{"status":null}`, again},
		"renamed":               {seen, `{"status":{"groupReplication":{"groupName":"` + groupB + `"}}}`, other},
		"its name taken away":   {seen, `{"status":{"groupReplication":{"groupName":null}}}`, other},
		"its name made empty":   {seen, `{"status":{"groupReplication":{"groupName":""}}}`, other},
		"mirrored": {seen,
			`{"status":{"currentPrimary":"db-3","groupReplication":{"primaryMember":"db-3","viewId":"v:2","hasQuorum":true}}}`, ""},
		"a quorum lost": {seen, `{"status":{"groupReplication":{"hasQuorum":false}}}`, ""},
		"named for the first": {`{"status":{"phase":"Provisioning"}}`,
			`{"status":{"groupReplication":{"groupName":"` + groupA + `","hasQuorum":false}}}`, ""},
		"named, when it was not": {`{"status":{"groupReplication":{"hasQuorum":false}}}`,
			`{"status":{"groupReplication":{"groupName":"` + groupA + `"}}}`, ""},
		"made for the first": {`{"status":{"groupReplication":{"groupName":"` + groupA + `","hasQuorum":false}}}`,
			`{"status":{"groupReplication":{"bootstrapped":true}}}`, ""},
		"renamed before made": {`{"status":{"groupReplication":{"groupName":"` + groupA + `","hasQuorum":false}}}`,
			`{"status":{"groupReplication":{"groupName":"` + groupB + `"}}}`, other},
	} {
		for caller, c := range callers {
			t.Run(name+" by the "+caller, func(t *testing.T) {
				u := groupWithStatus(t, r.before)
				judge(t, c.Status().Patch(context.Background(), u, merge(r.write)), r.refused)
			})
		}
	}
}

func TestAnEditorWritesNothingOfAGroupButTheWish(t *testing.T) {
	as := editor(t)
	for name, r := range map[string]struct{ write, refused string }{
		"a wish": {`{"status":{"targetPrimary":"db-3"}}`, ""},
		"a quorum": {`{"status":{"groupReplication":{"hasQuorum":false}}}`, "status.groupReplication is written by " +
			"the operator only"},
		"a primary": {`{"status":{"groupReplication":{"primaryMember":"db-3"}}}`, "status.groupReplication is " +
			"written by the operator only"},
		"a member": {`{"status":{"groupReplication":{"members":[{"instance":"db-9","state":"ONLINE","role":"PRIMARY","reachable":true}]}}}`, "status.groupReplication is written by the operator only"},
	} {
		t.Run(name, func(t *testing.T) {
			judge(t, as.Status().Patch(context.Background(), groupWithStatus(t, seen), merge(r.write)), r.refused)
		})
	}
}

func TestAMemberMayRingItsDoorbellAndNoMore(t *testing.T) {
	installed(t)
	ctx, made := context.Background(), typed(t, "bell")
	made.Spec.Replication.Mode = v1alpha1.ReplicationGroup
	for _, obj := range []runtime.Object{resources.Role(made, "bell-1"), resources.RoleBinding(made, "bell-1")} {
		u, err := resources.ForApply(obj)
		if err != nil {
			t.Fatal(err)
		}
		// The operator gives this right, and may give none that it has not.
		apply(t, as(t, "cnmsql-system", "cnmsql-operator"), u, resources.FieldManager)
	}
	for _, name := range []string{"bell-1", "bell-2"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: made.Namespace,
			Annotations: map[string]string{"other": "stays"},
			Labels:      map[string]string{v1alpha1.LabelInstance: name, v1alpha1.LabelRole: v1alpha1.RoleReplica}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "mysql", Image: "mysql"}}}}
		if err := api(t).Create(ctx, pod); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = api(t).Delete(ctx, pod, client.GracePeriodSeconds(0)) })
	}
	c := as(t, made.Namespace, "bell-1")
	change := func(name, patch string) error {
		return c.Patch(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: made.Namespace}},
			merge(patch))
	}
	const bell = `{"metadata":{"annotations":{"` + v1alpha1.AnnotationGroupObserved + `":"1"}}}`
	u := cluster(t, made.Name, "{}")
	judge(t, change("bell-1", bell), "")
	judge(t, change("bell-1", strings.Replace(bell, `"1"`, `"2"`, 1)), "")
	judge(t, change("bell-2", bell), "forbidden")
	for name, r := range map[string]struct{ patch, refused string }{
		"the name that -rw selects by": {`{"metadata":{"labels":{"` + v1alpha1.LabelInstance + `":"bell-2"}}}`,
			"neither labels, finalizers nor owners"},
		"no label at all": {`{"metadata":{"labels":null}}`, "neither labels, finalizers nor owners"},
		"its role": {`{"metadata":{"labels":{"` + v1alpha1.LabelRole + `":"primary"}}}`,
			"neither labels, finalizers nor owners"},
		"a finalizer": {`{"metadata":{"finalizers":["x.io/y"]}}`,
			"neither labels, finalizers nor owners"},
		"its own fencing": {`{"metadata":{"annotations":{"` + v1alpha1.AnnotationFencing + `":"on"}}}`,
			"not " + v1alpha1.AnnotationFencing},
		"the removal of another": {`{"metadata":{"annotations":{"other":null}}}`, "not other"},
		"its image": {`{"spec":{"containers":[{"name":"mysql","image":"evil"}]}}`,
			"and nothing of its spec"},
	} {
		t.Run(name, func(t *testing.T) { judge(t, change("bell-1", r.patch), r.refused) })
	}
	judge(t, api(t).Patch(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bell-1", Namespace: made.Namespace}},
		merge(`{"metadata":{"labels":{"`+v1alpha1.LabelRole+`":"primary"}}}`)), "")
	judge(t, c.Get(ctx, client.ObjectKeyFromObject(u), u), "")
	judge(t, c.Status().Patch(ctx, u, merge(`{"status":{"phase":"Healthy"}}`)), "forbidden")
	judge(t, c.Get(ctx, client.ObjectKey{Namespace: made.Namespace, Name: resources.Names(made.Name).Lease()},
		&unstructured.Unstructured{Object: map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}}),
		"forbidden")
}

func groupWithStatus(t *testing.T, status string) *unstructured.Unstructured {
	t.Helper()
	return made(t, "{instances: 3, replication: {mode: groupReplication}}", status)
}

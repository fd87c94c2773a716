package crd

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const permitted = `{"status":{"phase":"Failover","currentPrimary":"db-1","targetPrimary":"db-2",
	"gtidExecutedByInstance":{"db-1":"8f1c0000-0000-0000-0000-000000000000:1-9"},
	"promotion":{"epoch":2,"instance":"db-2","proof":"ManagerFenced","grantedAt":"2026-01-01T00:00:00.000000Z"}}}`

func TestAnInstanceMaySayThatItBecamePrimary(t *testing.T) {
	const became = `{"status":{"currentPrimary":"db-2","currentPrimaryTimestamp":"2026-01-01T00:00:01.000000Z"}}`
	for name, r := range map[string]struct{ before, as, write, refused string }{
		"as permitted": {permitted, "db-2", became, ""},
		"nothing new":  {permitted, "db-1", `{"status":{"phase":"Failover"}}`, ""},
		"without permission": {permitted, "db-3", `{"status":{"currentPrimary":"db-3"}}`,
			"only while status.targetPrimary and status.promotion.instance are db-3"},
		"for another": {permitted, "db-3", became,
			"may set status.currentPrimary to itself (db-3) only"},
		"for nobody": {permitted, "db-2", `{"status":{"currentPrimary":null}}`,
			"to itself (db-2) only"},
		"the time of another": {permitted, "db-2",
			`{"status":{"currentPrimaryTimestamp":"2026-01-01T00:00:01.000000Z"}}`, "to itself (db-2) only"},
		"a target without a promotion": {`{"status":{"targetPrimary":"db-2"}}`, "db-2", became,
			"status.promotion.instance"},
		"a promotion without the target": {`{"status":{"targetPrimary":"db-1","promotion":{"epoch":2,"instance":"db-2","proof":"Bootstrap"}}}`, "db-2", became, "only while status.targetPrimary"},
		"no status at all":               {`{}`, "db-2", became, "only while status.targetPrimary"},
		"something else besides": {permitted, "db-2", `{"status":{"currentPrimary":"db-2","primaryEpoch":9}}`,
			"not status.primaryEpoch"},
		"its own permission": {permitted, "db-3",
			`{"status":{"targetPrimary":"db-3","promotion":{"instance":"db-3"},"currentPrimary":"db-3"}}`,
			"only, not status."},
		"removing something": {permitted, "db-2", `{"status":{"phase":null}}`, "not status.phase"},
		"the operator": {permitted, "cnmsql-operator",
			`{"status":{"phase":"Healthy","targetPrimary":"db-1"}}`, ""},
		"a time that no client reads": {permitted, "db-2",
			`{"status":{"currentPrimary":"db-2","currentPrimaryTimestamp":"2026-01-01t00:00:01.000000z"}}`,
			"must be a time as 2026-11-26T14:00:00.000000Z"},
		"a time without microseconds": {permitted, "db-2",
			`{"status":{"currentPrimary":"db-2","currentPrimaryTimestamp":"2026-01-01T00:00:01Z"}}`,
			"must be a time as 2026-11-26T14:00:00.000000Z"},
		"the year 0": {permitted, "db-2",
			`{"status":{"currentPrimary":"db-2","currentPrimaryTimestamp":"0000-01-01T00:00:01.000000Z"}}`,
			"must be a time as 2026-11-26T14:00:00.000000Z"},
		"an instance of another cluster": {permitted, "db-x-2", `{"status":{"phase":"Healthy"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			u := withStatus(t, r.before)
			as, err := instanceClient(r.as)
			if err != nil {
				t.Fatal(err)
			}
			judge(t, as.Status().Patch(context.Background(), u, merge(r.write)), r.refused)
		})
	}
}

func TestAnEditorMayAskForASwitchoverAndNotDecideIt(t *testing.T) {
	as := editor(t)
	for name, r := range map[string]struct{ write, refused string }{
		"a wish": {`{"status":{"targetPrimary":"db-3"}}`, ""},
		"a promotion": {`{"status":{"promotion":{"epoch":3,"instance":"db-3","proof":"ManagerFenced"}}}`,
			"status.promotion is written by the operator only"},
		"an epoch": {`{"status":{"primaryEpoch":9}}`, "status.primaryEpoch is written by the operator only"},
		"a primary": {`{"status":{"currentPrimary":"db-3"}}`, "status.currentPrimary is written by the " +
			"operator only"},
		"no promotion more": {`{"status":{"promotion":null}}`, "status.promotion is written by the operator only"},
		"a fence": {`{"status":{"fencedInstances":["db-1"]}}`, "status.fencedInstances is written by the " +
			"operator only"},
		"an old failure": {`{"status":{"primaryFailingSince":"2020-01-01T00:00:00.000000Z"}}`,
			"status.primaryFailingSince is written by the operator only"},
		"no failover lately": {`{"status":{"lastFailoverTimestamp":"2020-01-01T00:00:00.000000Z"}}`,
			"status.lastFailoverTimestamp is written by the operator only"},
		"a number": {`{"status":{"latestGeneratedNode":7}}`, "status.latestGeneratedNode is written by the " +
			"operator only"},
		"a broken replica": {`{"status":{"replicationBrokenInstances":["db-2"]}}`,
			"status.replicationBrokenInstances is written by the operator only"},
		"a lower bound": {`{"status":{"gtidExecutedByInstance":{"db-1":"8f1c0000-0000-0000-0000-000000000000:1-7"}}}`, "status.gtidExecutedByInstance is written by the operator only"},
		"a bound less": {`{"status":{"gtidExecutedByInstance":null}}`, "status.gtidExecutedByInstance is " +
			"written by the operator only"},
		"another member": {`{"status":{"members":["db-9"]}}`, "status.members is written by the operator only"},
		"a clean conscience": {`{"status":{"divergedInstances":["db-1"]}}`, "status.divergedInstances is written by " +
			"the operator only"},
	} {
		t.Run(name, func(t *testing.T) {
			u := withStatus(t, permitted)
			judge(t, as.Status().Patch(context.Background(), u, merge(r.write)), r.refused)
		})
	}
}

// Who may write the status and nothing else of a Cluster may ask for a switchover, and no more than that.
func TestTheRightToTheStatusRunsNoImage(t *testing.T) {
	as := grantedVerbs(t, "switcher", "mysql.cnmsql.co", []string{"clusters/status"}, "patch")
	before := `{"status":{"currentPrimary":"db-1","image":"mysql:9.7","establishedAt":"2026-01-01T00:00:00.000000Z",
		"continuousArchiving":{"enabled":true,"missing":"x:1-5","missingSince":"2026-01-01T00:00:00Z"},
		"conditions":[` + aCondition("Ready", "True") + `]}}`
	removed := `"conditions":[` + aCondition("ArchiveStored", "False") + `]`
	const aReturn = `{"target":"db-2","reason":"x","at":"2026-01-01T00:00:00.000000Z"}`
	for name, r := range map[string]struct{ write, held string }{
		"a wish":           {`"targetPrimary":"db-3"`, ""},
		"an image":         {`"image":"example.com/evil:1"`, "image"},
		"no image":         {`"image":null`, "image"},
		"a whole archive":  {`"continuousArchiving":{"missing":null}`, "continuousArchiving"},
		"a verification":   {`"lastVerification":{"phase":"Restoring"}`, "lastVerification"},
		"its schedule":     {`"verificationSchedule":{"problem":"none"}`, "verificationSchedule"},
		"a return":         {`"switchoverReturn":` + aReturn, "switchoverReturn"},
		"a group":          {`"groupReplication":{"bootstrapped":true,"hasQuorum":true}`, "groupReplication"},
		"claims that stay": {`"observedGeneration":9`, "observedGeneration"},
		"a removed store":  {removed, "conditions[ArchiveStored]"},
		"other conditions": {`"conditions":[` + aCondition("Ready", "False") + `]`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			refused := ""
			if r.held != "" {
				refused = "status." + r.held + " is written by the operator only"
			}
			u := withStatus(t, before)
			judge(t, as.Status().Patch(context.Background(), u, merge(`{"status":{`+r.write+`}}`)), refused)
		})
	}
}

func aCondition(kind, is string) string {
	return `{"type":"` + kind + `","status":"` + is + `","reason":"Said","message":"by hand",
		"lastTransitionTime":"2026-01-02T00:00:00Z"}`
}

func withStatus(t *testing.T, status string) *unstructured.Unstructured {
	t.Helper()
	return made(t, "instances: 3", status)
}

// made is the Cluster db with a spec and a status, until the test ends.
func made(t *testing.T, spec, status string) *unstructured.Unstructured {
	t.Helper()
	c, ctx := api(t), context.Background()
	u := cluster(t, "db", spec)
	if err := c.Create(ctx, u); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(ctx, u) })
	if err := c.Status().Patch(ctx, u, merge(status)); err != nil {
		t.Fatal(err)
	}
	return u
}

func merge(patch string) client.Patch {
	return client.RawPatch("application/merge-patch+json", []byte(patch))
}

package crd

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestARunningServerToBeginWith holds the rules of spec.externalClusters for a server that is copied.
func TestARunningServerToBeginWith(t *testing.T) {
	c := api(t)
	const there = "connectionParameters: {host: h, user: u}"
	const secrets = ", password: {name: s, key: password}, sslRootCert: {name: s, key: ca.crt}"
	with := func(more, entry string) string {
		return "{bootstrap: {recovery: {source: old" + more + "}}, externalClusters: [{name: old, " + entry + "}]}"
	}
	of := func(entry string) string { return with("", entry) }
	host := func(parameters string) string {
		return of("connectionParameters: {host: db.example.com, user: copier" + parameters + "}" + secrets)
	}
	for spec, refused := range map[string]string{
		host(""): "",
		host(", port: '3307', sslmode: verify-ca"):                       "",
		host(", port: '0'"):                                              "must be a number from 1 to 65535",
		host(", port: '65536'"):                                          "must be a number from 1 to 65535",
		host(", port: x"):                                                "must be a number from 1 to 65535",
		host(", sslmode: disable"):                                       "must be verify-full or verify-ca",
		host(", dbname: shop"):                                           "takes host, port, user and sslmode",
		of("connectionParameters: {user: copier}" + secrets):             "needs host and user",
		of("connectionParameters: {host: db.example.com}" + secrets):     "needs host and user",
		of(there + ", password: {name: s, key: p}"):                      "needs password and sslRootCert",
		of(there + ", sslRootCert: {name: s, key: p}"):                   "needs password and sslRootCert",
		of(there + ", sslKey: {name: s, key: k}" + secrets):              "sslCert and sslKey",
		of(there + ", objectStore: " + somewhere + secrets):              "make two entries of it",
		of("objectStore: " + somewhere + secrets):                        "go with connectionParameters",
		with(", backupID: x", there+secrets):                             "go with backups",
		with(", recoveryTarget: {targetImmediate: true}", there+secrets): "go with backups",
	} {
		t.Run(spec, func(t *testing.T) {
			judge(t, c.Create(context.Background(), cluster(t, "copied", spec), client.DryRunAll), refused)
		})
	}
}

// TestAServerToFollow holds the rules of spec.replica: a Cluster follows the server that it is a copy of, and none any
// more once it has taken writes.
func TestAServerToFollow(t *testing.T) {
	c := api(t)
	const server = "externalClusters: [{name: old, connectionParameters: {host: h, user: u}, " +
		"password: {name: s, key: password}, sslRootCert: {name: s, key: ca.crt}}]"
	const begins = "bootstrap: {recovery: {source: old}}, " + server
	judgeEach(t, map[string]string{
		"{" + begins + ", replica: {source: old}}":                "",
		"{" + begins + ", replica: {source: old, enabled: true}}": "",
		"{" + begins + ", replica: {enabled: false}}":             "",
		"{" + begins + ", replica: {}}":                           "spec.replica.source is needed",
		"{" + begins + ", replica: {source: new}}":                "must name the same one",
		"{" + server + ", replica: {source: old}}":                "must name the same one",
		"{replica: {enabled: false}}":                             "",
		"{" + begins + ", instances: 3, replica: {source: old}, " +
			"replication: {mode: groupReplication}}": "follows no other server",
		"{bootstrap: {recovery: {source: old}}, externalClusters: [{name: old, objectStore: " + somewhere + "}], " +
			"replica: {source: old}}": "must have connectionParameters",
	})
	for status, refused := range map[string]string{
		`{"epoch":1,"instance":"db-1","proof":"Bootstrap","follows":"old"}`: "",
		`{"epoch":2,"instance":"db-1","proof":"Bootstrap"}`:                 "this Cluster takes writes of its own",
	} {
		t.Run(status, func(t *testing.T) {
			ctx := context.Background()
			u := cluster(t, "took", "{"+begins+", replica: {enabled: false}}")
			judge(t, c.Create(ctx, u), "")
			t.Cleanup(func() { judge(t, c.Delete(ctx, u), "") })
			judge(t, c.Status().Patch(ctx, u, merge(`{"status":{"promotion":`+status+`}}`)), "")
			judge(t, c.Patch(ctx, u, merge(`{"spec":{"replica":{"enabled":true,"source":"old"}}}`)), refused)
		})
	}
}

// TestAStatusThatWasSetBackIsMended has the operator write that a Cluster takes writes whose spec went back as well,
// with a backup of etcd, to before it took over.
func TestAStatusThatWasSetBackIsMended(t *testing.T) {
	c, ctx := api(t), context.Background()
	u := cluster(t, "back", "{bootstrap: {recovery: {source: old}}, replica: {source: old}, externalClusters: "+
		"[{name: old, connectionParameters: {host: h, user: u}, password: {name: s, key: password}, "+
		"sslRootCert: {name: s, key: ca.crt}}]}")
	judge(t, c.Create(ctx, u), "")
	t.Cleanup(func() { judge(t, c.Delete(ctx, u), "") })
	promotion := func(p string) client.Patch { return merge(`{"status":{"promotion":` + p + `}}`) }
	judge(t, c.Status().Patch(ctx, u, promotion(`{"epoch":1,"instance":"db-1","proof":"Bootstrap","follows":"old"}`)), "")
	judge(t, c.Status().Patch(ctx, u, promotion(`{"epoch":3,"proof":"StatusRestored","follows":null}`)), "")
	judge(t, c.Patch(ctx, u, merge(`{"spec":{"replica":{"enabled":false}}}`)), "")
	judge(t, c.Patch(ctx, u, merge(`{"spec":{"replica":{"enabled":true}}}`)), "this Cluster takes writes of its own")
}

// TestTheSourceIsRemovedOnceItHasServed has a user remove the server, or the store, that the Cluster began with.
func TestTheSourceIsRemovedOnceItHasServed(t *testing.T) {
	c, ctx := api(t), context.Background()
	const needed = "leave it there until the Cluster has its data"
	for status, refused := range map[string]string{
		`{"phase":"Provisioning"}`: needed,
		`{"establishedAt":"2026-11-29T05:00:00Z","promotion":{"epoch":1,"instance":"db-1","proof":"Bootstrap",` +
			`"follows":"old"}}`: needed,
		`{"establishedAt":"2026-11-29T05:00:00Z","promotion":{"epoch":2,"instance":"db-1","proof":"Bootstrap"}}`: "",
	} {
		t.Run(status, func(t *testing.T) {
			u := cluster(t, "served", "{bootstrap: {recovery: {source: old}}, externalClusters: [{name: old, "+
				"objectStore: "+somewhere+"}]}")
			judge(t, c.Create(ctx, u), "")
			t.Cleanup(func() { judge(t, c.Delete(ctx, u), "") })
			judge(t, c.Status().Patch(ctx, u, merge(`{"status":`+status+`}`)), "")
			judge(t, c.Patch(ctx, u, merge(`{"spec":{"externalClusters":null}}`)), refused)
			// A status that is set back afterwards is written all the same, or nobody could mend it.
			judge(t, c.Status().Patch(ctx, u, merge(`{"status":{"establishedAt":null}}`)), "")
		})
	}
}

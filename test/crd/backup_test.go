package crd

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/resources"
)

// somewhere is an object store that can be.
const somewhere = "{bucket: backups, endpoint: 'https://s3.example.com', credentials: {accessKeyId: {name: s, key: id}, secretAccessKey: {name: s, key: key}}}"

// atGoogle is one of Google Cloud Storage.
const atGoogle = "{bucket: back_ups, googleCredentials: {applicationCredentials: {name: s, key: key.json}}}"

// object is one of our kinds, with a spec in YAML.
func object(t *testing.T, kind, name, spec string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	text :=
		fmt.Sprintf(
			"{apiVersion: mysql.cnmsql.co/v1alpha1, kind: %s, metadata: {name: %s, namespace: default}, spec: %s}",
			kind, name, spec)
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return u
}

func TestRulesForBackups(t *testing.T) {
	c := api(t)
	for spec, refused := range map[string]string{
		"Backup {cluster: {name: db}}":                                               "",
		"Backup {cluster: {name: db}, objectStore: " + somewhere + "}":               "",
		"Backup {cluster: {name: db}, method: clone, target: primary, online: true}": "",
		"Backup {cluster: {name: db}, method: xtrabackup}":                           "set method: clone",
		"Backup {cluster: {name: db}, method: volumeSnapshot}":                       "set method: clone",
		"Backup {cluster: {name: db}, method: any}":                                  "the only method is clone",
		"Backup {cluster: {name: db}, online: false}":                                "online cannot be false",
		"Backup {cluster: {name: db}, reclaimPolicy: delete}":                        "",
		"Backup {cluster: {name: db}, reclaimPolicy: recycle}":                       "reclaimPolicy must be Retain or Delete",
		"Backup {cluster: {name: db}, reclaimPolicy: retain}":                        "",
		"Backup {cluster: {name: db}, target: any}":                                  "spec.target",
		"Backup {}": "spec.cluster",
		"ScheduledBackup {cluster: {name: db}, schedule: '0 0 3 * * *'}":                     "",
		"ScheduledBackup {cluster: {name: db}, schedule: '0 0 3 * * *', method: xtrabackup}": "set method: clone",
		"ScheduledBackup {cluster: {name: db}, schedule: a, retentionPolicy: 7d}":            "expire together",
		"ScheduledBackup {cluster: {name: db}}":                                              "spec.schedule",
	} {
		t.Run(spec, func(t *testing.T) {
			kind, spec, _ := strings.Cut(spec, " ")
			judge(t, c.Create(context.Background(), object(t, kind, "b", spec), client.DryRunAll), refused)
		})
	}
}

// with is an object store in which something is replaced, as a Cluster's.
func with(store, old, replaced string) string {
	if !strings.Contains(store, old) {
		panic("there is no " + old)
	}
	return "backup: {objectStore: " + strings.Replace(store, old, replaced, 1) + "}"
}

// judgeEach makes a Cluster of each spec, and holds the answer against what is to be refused of it.
func judgeEach(t *testing.T, specs map[string]string) {
	t.Helper()
	c := api(t)
	for spec, refused := range specs {
		t.Run(spec, func(t *testing.T) {
			judge(t, c.Create(context.Background(), cluster(t, "judged", spec), client.DryRunAll), refused)
		})
	}
}

func TestRulesForObjectStores(t *testing.T) {
	judgeEach(t, map[string]string{
		"backup: {objectStore: " + somewhere + "}":                                    "",
		with(somewhere, "https://s3.example.com", "https://s3.example.com/bucket"):    "put the bucket into objectStore.bucket",
		with(somewhere, "https://s3.example.com", "s3.example.com"):                   "must be a URL of a host",
		with(somewhere, "endpoint: 'https://s3.example.com'", "region: eu-central-1"): "",
		with(somewhere, "endpoint: 'https://s3.example.com', ", ""):                   "objectStore.endpoint or objectStore.region is needed",
		with(somewhere, "bucket: backups", "bucket: UPPER"):                           "spec.backup.objectStore.bucket",
		with(somewhere, "bucket: backups", "bucket: backups, path: /a"):               "spec.backup.objectStore.path",
		with(somewhere, "bucket: backups", "bucket: backups, signatureVersion: s3v2"): "s3v2 is not supported",
		with(somewhere, "bucket: backups", "bucket: backups, serverSideEncryption: 'aws:kms:dsse'"): "set aws:kms, or " +
			"aws:kms:KEY",
		with(somewhere, "bucket: backups", "bucket: backups, serverSideEncryption: 'aws:kms:dsse:KEY'"): "set aws:kms, or " +
			"aws:kms:KEY",
		with(somewhere, "bucket: backups", "bucket: backups, serverSideEncryption: 'aws:kms:dsse-key'"):                    "",
		with(somewhere, "bucket: backups", "bucket: backups, encryption: {identity: {name: age, key: identity}}"):          "",
		with(somewhere, "bucket: backups", "bucket: backups, encryption: {}"):                                              "objectStore.encryption.identity",
		with(somewhere, "bucket: backups", "bucket: backups, encryption: {identity: {name: age, key: ''}}"):                "objectStore.encryption.identity.key",
		with(somewhere, "accessKeyId: {name: s, key: id}, ", ""):                                                           "accessKeyId and secretAccessKey belong together",
		with(somewhere, "accessKeyId: {name: s, key: id}", "inheritFromIAMRole: true"):                                     "must be either accessKeyId and secretAccessKey, or inheritFromIAMRole",
		with(somewhere, "bucket: backups", "bucket: back_ups"):                                                             "cannot have an underscore",
		with(somewhere, "credentials: {accessKeyId: {name: s, key: id}, secretAccessKey: {name: s, key: key}}", "path: a"): "needs either credentials (S3 and what speaks it), googleCredentials",
		with(somewhere, "bucket: backups", "bucket: backups, googleCredentials: {gkeEnvironment: true}"):                   "needs either credentials (S3 and what speaks it), googleCredentials",
		with(atGoogle, "", ""): "",
		with(atGoogle, "applicationCredentials: {name: s, key: key.json}", "gkeEnvironment: true"):                                         "",
		with(atGoogle, "applicationCredentials: {name: s, key: key.json}", "gkeEnvironment: false"):                                        "must be either applicationCredentials, or gkeEnvironment: true",
		with(atGoogle, "applicationCredentials", "gkeEnvironment: true, applicationCredentials"):                                           "must be either applicationCredentials, or gkeEnvironment: true",
		with(atGoogle, "bucket", "path: a/b, storageClass: NEARLINE, endpoint: 'http://gcs.store.svc:4443', forcePathStyle: true, bucket"): "",
		with(atGoogle, "applicationCredentials: {name: s, key: key.json}}", "gkeEnvironment: true}, endpoint: "+
			"'http://s.example.com'"): "endpoint must be https:// with googleCredentials.gkeEnvironment",
		with(atGoogle, "applicationCredentials: {name: s, key: key.json}}", "gkeEnvironment: true}, endpoint: "+
			"'https://s.example.com'"): "",
		with(atGoogle, "bucket", "region: europe-west1, bucket"):         "objectStore.region goes with S3",
		with(atGoogle, "bucket", "serverSideEncryption: AES256, bucket"): "objectStore.serverSideEncryption goes with S3",
		with(atGoogle, "bucket", "forcePathStyle: false, bucket"):        "objectStore.forcePathStyle goes with S3",
	})
}

func TestRulesForRecovery(t *testing.T) {
	source := "externalClusters: [{name: old, objectStore: " + somewhere + "}]"
	judgeEach(t, map[string]string{
		"{bootstrap: {recovery: {source: old}}, externalClusters: [{name: old, objectStore: " + atGoogle + "}]}": "",
		"{bootstrap: {recovery: {backup: {name: monday}}}}":                                                      "",
		"{bootstrap: {recovery: {}}}":                                                                                                                "needs either backup",
		"{bootstrap: {recovery: {source: old}}}":                                                                                                     "must name one of spec.externalClusters",
		"{bootstrap: {recovery: {source: old}}, " + source + "}":                                                                                     "",
		"{bootstrap: {recovery: {source: new}}, " + source + "}":                                                                                     "must name one of spec.externalClusters",
		"{bootstrap: {recovery: {source: old, backup: {name: monday}}}, " + source + "}":                                                             "needs either backup",
		"{bootstrap: {recovery: {backup: {name: monday}, backupID: b}}}":                                                                             "backupID goes with source",
		"{bootstrap: {recovery: {backup: {name: monday}, recoveryTarget: {targetImmediate: true}}}}":                                                 "",
		"{bootstrap: {recovery: {backup: {name: monday}, recoveryTarget: {targetTime: '2026-11-23T21:04:05.123456Z'}}}}":                             "",
		"{bootstrap: {recovery: {backup: {name: monday}, recoveryTarget: {targetTime: yesterday}}}}":                                                 "targetTime",
		"{bootstrap: {recovery: {backup: {name: monday}, recoveryTarget: {targetTime: '2026-11-23T21:04:05Z', targetImmediate: true}}}}":             "takes one of targetTime",
		"{bootstrap: {recovery: {backup: {name: monday}, recoveryTarget: {targetGTID: 'aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:7', exclusive: true}}}}": "",
		"{bootstrap: {recovery: {backup: {name: monday}, recoveryTarget: {exclusive: true}}}}":                                                       "exclusive goes with targetGTID",
		"{bootstrap: {initdb: {database: shop}, recovery: {backup: {name: monday}}}}":                                                                "",
		"{bootstrap: {initdb: {postInitSQL: [a]}, recovery: {backup: {name: monday}}}}":                                                              "which come with the backup",
	})
}

func TestRulesForArchivesAndRetention(t *testing.T) {
	judgeEach(t, map[string]string{
		"backup: {continuousArchiving: {enabled: true, targetRPOSeconds: 1}, objectStore: " + somewhere + "}":                    "",
		"backup: {continuousArchiving: {enabled: true, targetRPOSeconds: 0}, objectStore: " + somewhere + "}":                    "targetRPOSeconds",
		"backup: {retentionPolicy: 30d, minimumBackups: 3, objectStore: " + somewhere + "}":                                      "",
		"backup: {retentionPolicy: 12m, objectStore: " + somewhere + "}":                                                         "",
		"backup: {retentionPolicy: month, objectStore: " + somewhere + "}":                                                       "must be a number and d, w or m",
		"backup: {retentionPolicy: 0d, objectStore: " + somewhere + "}":                                                          "must be a number and d, w or m",
		"backup: {retentionPolicy: 99999d, objectStore: " + somewhere + "}":                                                      "spec.backup.retentionPolicy",
		"backup: {minimumBackups: 2, objectStore: " + somewhere + "}":                                                            "goes with spec.backup.retentionPolicy",
		"backup: {retentionPolicy: 7d, minimumBackups: 0, objectStore: " + somewhere + "}":                                       "spec.backup.minimumBackups",
		"backup: {verify: {schedule: '0 0 4 * * *', timeZone: Europe/Berlin, maxDuration: 12h}, objectStore: " + somewhere + "}": "",
		"backup: {verify: {maxDuration: 30s}, objectStore: " + somewhere + "}":                                                   "must be at least 1m",
		"backup: {verify: {timeZone: Europe/Berlin}, objectStore: " + somewhere + "}":                                            "timeZone goes with schedule",
		"backup: {verify: {schedule: '0 0 4 * * *'}}":                                                                            "spec.backup.verify needs spec.backup.objectStore",
	})
}

func TestRulesForCompression(t *testing.T) {
	c := api(t)
	for compression, refused := range map[string]string{"zstd": "", "none": "", "gzip": "spec.backup.compression"} {
		spec := "backup: {compression: " + compression + ", objectStore: " + somewhere + "}"
		judge(t, c.Create(context.Background(), cluster(t, "compressed", spec), client.DryRunAll), refused)
	}
}

// TestAThrowAwayClusterIsTaken: whatever a Cluster has, the one by which its backups are tried
// breaks no rule.
func TestAThrowAwayClusterIsTaken(t *testing.T) {
	c := api(t)
	for name, spec := range map[string]string{
		"plain": "backup: {objectStore: " + somewhere + "}",
		"much": "{instances: 3, minSyncReplicas: 1, maxSyncReplicas: 2, imageName: 'mysql:8.4', bootstrap: {initdb: " +
			"{database: shop, owner: me, postInitSQL: [a]}}," +
			" failoverDelay: 5, failoverPolicy: {maxTransactionsBehind: 5}, managed: {services: {additional: [{name: orders, selectorType: rw}]}}," +
			" mysql: {semiSync: {enabled: true, dataDurability: quorum}, parameters: {max_connections: '7'}}, enableSuperuserAccess: true," +
			" resources: {limits: {memory: 1Gi}}, env: [{name: A, value: b}], inheritedMetadata: {labels: {a: b}, annotations: {c: d}}," +
			" backup: {objectStore: " + somewhere + ", continuousArchiving: {enabled: true}, maxBytesPerSecond: " +
			"1000000, verify: {schedule: '@daily'}}}",
		"group": "{instances: 3, replication: {mode: groupReplication}, backup: {objectStore: " + somewhere + "}}",
	} {
		t.Run(name, func(t *testing.T) {
			ctx, u := context.Background(), cluster(t, "verified-"+name, spec)
			if err := c.Create(ctx, u); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Delete(ctx, u) })
			var stored v1alpha1.Cluster
			if err := c.Get(ctx, client.ObjectKeyFromObject(u), &stored); err != nil {
				t.Fatal(err)
			}
			for _, target := range []string{"", "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:1-7"} {
				copied := resources.ThrowAway(&stored, target)
				judge(t, c.Create(ctx, copied, client.DryRunAll, client.FieldValidation("Strict")), "")
				if copied.Spec.Instances != 1 || copied.Spec.MySQL.Parameters["event_scheduler"] != "OFF" {
					t.Errorf("it becomes %+v", copied.Spec)
				}
			}
		})
	}
}

func TestABackupIsMadeOnce(t *testing.T) {
	c := api(t)
	b := object(t, "Backup", "once", "{cluster: {name: db}}")
	if err := c.Create(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(context.Background(), b) })
	b.Object["spec"] = map[string]any{"cluster": map[string]any{"name": "other"}}
	judge(t, c.Update(context.Background(), b), "create another Backup")
}

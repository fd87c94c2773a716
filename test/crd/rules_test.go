package crd

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rulesForANewCluster are specs by what they try, and what the refusal of each says.
var rulesForANewCluster = map[string]struct{ spec, refused string }{
	"minimal":                    {"{}", ""},
	"no storage":                 {"storage: null", "spec.storage"},
	"small storage":              {"storage: {size: 512Mi}", "spec.storage.size must be a quantity of at least 1Gi"},
	"storage in other units":     {"storage: {size: 1.5G}", ""},
	"storage not a quantity":     {"storage: {size: much}", "spec.storage.size must be a quantity of at least 1Gi"},
	"no instances":               {"instances: 0", "should be greater than or equal to 1"},
	"too many instances":         {"instances: 10", "should be less than or equal to 9"},
	"most instances":             {"instances: 9", ""},
	"acknowledgements":           {"{instances: 3, minSyncReplicas: 1, maxSyncReplicas: 2, mysql: {semiSync: {enabled: true}}}", ""},
	"more acknowledgements than": {"{instances: 3, minSyncReplicas: 3, mysql: {semiSync: {enabled: true}}}", "lower minSyncReplicas or raise instances"},
	"min above max":              {"{instances: 3, minSyncReplicas: 2, maxSyncReplicas: 1, mysql: {semiSync: {enabled: true}}}", "spec.minSyncReplicas must not be larger than spec.maxSyncReplicas"},
	"max not below instances":    {"{instances: 3, maxSyncReplicas: 3, mysql: {semiSync: {enabled: true}}}", "lower maxSyncReplicas or raise instances"},
	"min without semi-sync":      {"{instances: 3, minSyncReplicas: 1}", "spec.minSyncReplicas needs spec.mysql.semiSync.enabled: true"},
	"max without semi-sync":      {"{instances: 3, maxSyncReplicas: 1, mysql: {semiSync: {enabled: false}}}", "spec.maxSyncReplicas needs spec.mysql.semiSync.enabled: true"},
	"zeros without semi-sync":    {"{instances: 3, minSyncReplicas: 0, maxSyncReplicas: 0}", ""},
	"quorum":                     {"{instances: 3, mysql: {semiSync: {enabled: true, dataDurability: quorum}}}", ""},
	"quorum that is off": {"{instances: 3, mysql: {semiSync: " +
		"{dataDurability: quorum}}}", "set enabled: true, or remove dataDurability"},
	"required that is off": {"{instances: 3, mysql: {semiSync: " +
		"{enabled: false, dataDurability: required}}}", "set enabled: true, or remove dataDurability"},
	"the default that is off": {"{instances: 3, mysql: {semiSync: " +
		"{dataDurability: preferred}}}", ""},
	"quorum that is off in a group": {"{instances: 3, replication: {mode: groupReplication}, mysql: {semiSync: " +
		"{dataDurability: quorum}}}", ""},
	"unknown durability":            {"{mysql: {semiSync: {enabled: true, dataDurability: total}}}", `supported values: "preferred", "required", "quorum"`},
	"unknown binlog format":         {"mysql: {binlogFormat: JSON}", `supported values: "ROW", "STATEMENT", "MIXED"`},
	"unknown mode":                  {"replication: {mode: multiPrimary}", `supported values: "async", "groupReplication"`},
	"database with a quote":         {"bootstrap: {initdb: {database: 'a`b'}}", "spec.bootstrap.initdb.database"},
	"owner root":                    {"bootstrap: {initdb: {owner: root}}", "must not be an account of the server or of the operator"},
	"owner of the operator":         {"bootstrap: {initdb: {owner: cnmsql_manager}}", "must not be an account of the server or of the operator"},
	"owner from a reserved name":    {"bootstrap: {initdb: {database: root}}", "spec.bootstrap.initdb.owner is needed"},
	"owner from a long name":        {"bootstrap: {initdb: {database: " + strings.Repeat("a", 33) + "}}", "spec.bootstrap.initdb.owner is needed"},
	"long name with an owner":       {"bootstrap: {initdb: {owner: app, database: " + strings.Repeat("a", 64) + "}}", ""},
	"quorum with a timeout":         {"{instances: 3, mysql: {semiSync: {enabled: true, dataDurability: quorum, timeoutMillis: 100}}}", "timeoutMillis has no meaning under dataDurability quorum"},
	"required with a timeout":       {"{instances: 3, mysql: {semiSync: {enabled: true, dataDurability: required, timeoutMillis: 100}}}", ""},
	"quorum of too few":             {"{instances: 5, maxSyncReplicas: 1, mysql: {semiSync: {enabled: true, dataDurability: quorum}}}", "raise or remove maxSyncReplicas"},
	"quorum of enough":              {"{instances: 5, maxSyncReplicas: 2, mysql: {semiSync: {enabled: true, dataDurability: quorum}}}", ""},
	"database of the server":        {"bootstrap: {initdb: {database: mysql, owner: app}}", "must not be a schema of the server"},
	"initdb":                        {"bootstrap: {initdb: {database: shop, owner: keeper, characterSet: utf8mb4, collation: utf8mb4_0900_ai_ci, postInitSQL: ['SELECT 1']}}", ""},
	"secret without a name":         {"bootstrap: {initdb: {secret: {name: ''}}}", "spec.bootstrap.initdb.secret.name"},
	"own environment":               {"env: [{name: TZ, value: UTC}]", ""},
	"environment of the operator":   {"env: [{name: CNMSQL_CLUSTER, value: x}]", "names that begin with CNMSQL_ are the operator's"},
	"environment that is dropped":   {"env: [{name: TZ, value: UTC}, {name: MYSQL_ROOT_PASSWORD, value: x}]", "names that begin with MYSQL do not reach mysqld"},
	"environment of mysqld's files": {"env: [{name: MYSQLD_OPTS, value: x}]", "names that begin with MYSQL do not reach mysqld"},
	"environment of the supervisor": {"env: [{name: MYSQLD_PARENT_PID, value: '1'}]", "names that begin with CNMSQL_ are the operator's"},
	"unknown log level":             {"logLevel: loud", "spec.logLevel"},
	"no time to stop":               {"maxStopDelay: 0", "spec.maxStopDelay"},
	"no time to start":              {"maxStartDelay: 1", "spec.maxStartDelay"},
	"services":                      {"managed: {services: {disabledDefaultServices: [ro, r], template: {metadata: {labels: {a: b}, annotations: {c: d}}, spec: {type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 30000, loadBalancerSourceRanges: [10.0.0.0/8]}}, additional: [{name: mysql-lb, selectorType: rw, serviceTemplate: {spec: {type: NodePort, sessionAffinity: ClientIP}}}, {name: reads, selectorType: ro, updateStrategy: replace, serviceTemplate: {metadata: {labels: {pool: reporting}}, spec: {type: ClusterIP}}}, {name: out, selectorType: r, serviceTemplate: {spec: {type: ExternalName, externalName: db.example.com}}}]}}", ""},
	"no Service for writes":         {"managed: {services: {disabledDefaultServices: [rw]}}", "the operator leads writes by it; disable ro or r"},
	"a Service twice":               {"managed: {services: {additional: [{name: a, selectorType: rw}, {name: a, selectorType: ro}]}}", "Duplicate value"},
	"a default Service's name":      {"managed: {services: {additional: [{name: ro, selectorType: ro}]}}", "those are the default Services; choose another name"},
	"an instance's name":            {"managed: {services: {additional: [{name: '4', selectorType: ro}]}}", "those are the Services of the instances; choose another name"},
	"no name for a Service":         {"managed: {services: {additional: [{name: A_b, selectorType: ro}]}}", "may hold only lower-case letters"},
	"a long name for a Service":     {"managed: {services: {additional: [{name: " + strings.Repeat("a", 60) + ", selectorType: ro}]}}", "choose a shorter name in spec.managed.services.additional"},
	"a Service for nobody":          {"managed: {services: {additional: [{name: a, selectorType: w}]}}", `supported values: "rw", "ro", "r"`},
	"a Service for whom":            {"managed: {services: {additional: [{name: a}]}}", "selectorType"},
	"an external name without type": {"managed: {services: {template: {spec: {externalName: a.b}}}}", "give both or neither"},
	"type without external name":    {"managed: {services: {template: {spec: {type: ExternalName}}}}", "give both or neither"},
	"policy without a way in":       {"managed: {services: {template: {spec: {externalTrafficPolicy: Local}}}}", "externalTrafficPolicy needs type NodePort or LoadBalancer"},
	"ranges without load balancer":  {"managed: {services: {template: {spec: {type: NodePort, loadBalancerSourceRanges: [10.0.0.0/8]}}}}", "loadBalancerSourceRanges needs type LoadBalancer"},
	"health check without policy":   {"managed: {services: {template: {spec: {type: LoadBalancer, healthCheckNodePort: 30000}}}}", "healthCheckNodePort needs type LoadBalancer and externalTrafficPolicy Local"},
	"selector of the user's":        {"managed: {services: {template: {spec: {selector: {a: b}}}}}", `unknown field "spec.managed.services.template.spec.selector"`},
	"volumes that go":               {"storage: {size: 1Gi, whenScaled: Delete, whenDeleted: Delete}", ""},
	"volumes that do neither":       {"storage: {size: 1Gi, whenDeleted: Archive}", `supported values: "Retain", "Delete"`},
	"an archive that goes":          {"backup: {objectStore: " + somewhere + ", reclaimPolicy: delete}", ""},
	"inherited label":               {"inheritedMetadata: {labels: {team: data_platform-1.x, no: ''}}", ""},
	"inherited label with a space": {"inheritedMetadata: {labels: {team: data platform}}",
		"the value of a label holds only"},
	"the operator's label": {"inheritedMetadata: {labels: {mysql.cnmsql.co/role: primary}}",
		"names that begin with mysql.cnmsql.co/ or cnmsql.cnmsql.co/ are the operator's"},
	"inherited annotation":      {"inheritedMetadata: {annotations: {example.com/team: a}}", ""},
	"the operator's annotation": {"inheritedMetadata: {annotations: {mysql.cnmsql.co/kept: now}}", "mysql.cnmsql.co/ or cnmsql.cnmsql.co/ are the operator's"},
	"failover before now":       {"failoverDelay: -1", "spec.failoverDelay"},
}

func TestRulesForANewCluster(t *testing.T) {
	c := api(t)
	for name, r := range rulesForANewCluster {
		t.Run(name, func(t *testing.T) {
			u := cluster(t, "new", r.spec)
			judge(t, c.Create(context.Background(), u, client.DryRunAll, client.FieldValidation("Strict")), r.refused)
		})
	}
}

func TestAFieldThatDoesNotExistIsRefusedByAStrictClient(t *testing.T) {
	c := api(t)
	for spec, field := range map[string]string{
		"{replication: {mode: groupReplication, groupReplication: {groupName: 11111111-1111-1111-1111-111111111111, seeds: [a:1]}}}": "spec.replication.groupReplication.seeds",
	} {
		t.Run(field, func(t *testing.T) {
			u := cluster(t, "strict", spec)
			judge(t, c.Create(context.Background(), u, client.DryRunAll, client.FieldValidation("Strict")),
				`unknown field "`+field+`"`)
		})
	}
}

// TestWhatIsNotSupportedYetIsRefusedForEveryClient: one that does not ask for strict
// validation must not have it dropped in silence.
func TestWhatIsNotSupportedYetIsRefusedForEveryClient(t *testing.T) {
	c := api(t)
	for spec, refused := range map[string]string{
		"bootstrap: {}": "spec.bootstrap.initdb is needed",
		"backup: {retentionPolicy: 7d}": "spec.backup.retentionPolicy needs " +
			"spec.backup.objectStore",
		"backup: {continuousArchiving: {enabled: true}}":                 "needs spec.backup.objectStore",
		"backup: {reclaimPolicy: Delete}":                                "Delete with spec.backup.objectStore",
		"backup: {reclaimPolicy: recycle}":                               "must be Retain, or Delete",
		"externalClusters: [{name: other, password: {name: a, key: b}}]": "go with connectionParameters",
		"replica: {enabled: true, source: other}":                        "must name the same one",
		"certificates: {serverCASecret: mine}":                           "leave nothing but serverAltDNSNames",
		"certificates: {serverAltDNSNames: ['db.x.org:1']}":              "serverAltDNSNames",
		"binlogStorage: {size: 1Gi}": "spec.binlogStorage is not " +
			"supported yet",
		"imageCatalogRef: {kind: ImageCatalog, name: c, series: '9.7'}": "name the image in spec.imageName",
		"rootPasswordSecret: {name: mine}": "spec.rootPasswordSecret is not " +
			"supported yet",
		"serviceAccountTemplate: {metadata: {labels: {a: b}}}":                   "spec.inheritedMetadata",
		"storage: {size: 1Gi, pvcTemplate: {}}":                                  "name size and storageClass",
		"storage: {size: 1Gi, resizeInUseVolumes: false}":                        "cannot be false",
		"enableSwitchoverOnDrain: false":                                         "always hands over",
		"flavor: mariadb":                                                        "spec.flavor",
		"primaryUpdateMethod: restart":                                           "spec.primaryUpdateMethod",
		"{flavor: mysql, enableSwitchoverOnDrain: true, schedulerName: mine}":    "",
		"{primaryUpdateStrategy: unsupervised, primaryUpdateMethod: switchover}": "",
		"storage: {size: 1Gi, resizeInUseVolumes: true}":                         "",
	} {
		t.Run(spec, func(t *testing.T) {
			judge(t, c.Create(context.Background(), cluster(t, "lax", spec), client.DryRunAll,
				client.FieldValidation("Ignore")), refused)
		})
	}
}

func TestASecurityContextThatGivesTheNodeAwayIsRefused(t *testing.T) {
	c := api(t)
	for spec, refused := range map[string]string{
		"securityContext: {privileged: true}":                                 "spec.securityContext.privileged is refused",
		"securityContext: {allowPrivilegeEscalation: true}":                   "allowPrivilegeEscalation",
		"securityContext: {runAsUser: 0}":                                     "spec.securityContext.runAsUser: 0",
		"podSecurityContext: {runAsUser: 0}":                                  "spec.podSecurityContext.runAsUser: 0",
		"podSecurityContext: {runAsNonRoot: false}":                           "spec.podSecurityContext.runAsNonRoot",
		"securityContext: {capabilities: {add: [SYS_NICE, SYS_ADMIN]}}":       "capabilities.add",
		"securityContext: {seccompProfile: {type: Unconfined}}":               "seccompProfile",
		"securityContext: {procMount: Unmasked}":                              "procMount",
		"securityContext: {windowsOptions: {hostProcess: true}}":              "hostProcess",
		"securityContext: {capabilities: {add: [SYS_NICE]}}":                  "",
		"{podSecurityContext: {runAsUser: 1001, fsGroup: 1001}}":              "",
		"securityContext: {privileged: false, readOnlyRootFilesystem: false}": "",

		"securityContext: {appArmorProfile: {type: Unconfined}}":                        "spec.securityContext.appArmorProfile.type",
		"podSecurityContext: {appArmorProfile: {type: Unconfined}}":                     "spec.podSecurityContext.appArmorProfile.type",
		"podSecurityContext: {appArmorProfile: {type: RuntimeDefault}}":                 "",
		"securityContext: {appArmorProfile: {type: Localhost, localhostProfile: mine}}": "",
		unconfined("mysql",
			"unconfined"): "spec.inheritedMetadata.annotations",
		unconfined("mysql", "runtime/default"):                                         "",
		"securityContext: {seLinuxOptions: {type: spc_t}}":                             "spec.securityContext.seLinuxOptions.type",
		"podSecurityContext: {seLinuxOptions: {type: spc_t}}":                          "spec.podSecurityContext.seLinuxOptions.type",
		"securityContext: {seLinuxOptions: {user: system_u}}":                          "spec.securityContext.seLinuxOptions.user",
		"podSecurityContext: {seLinuxOptions: {user: system_u}}":                       "spec.podSecurityContext.seLinuxOptions.user",
		"securityContext: {seLinuxOptions: {role: system_r}}":                          "spec.securityContext.seLinuxOptions.role",
		"podSecurityContext: {seLinuxOptions: {role: system_r}}":                       "spec.podSecurityContext.seLinuxOptions.role",
		"podSecurityContext: {seLinuxOptions: {type: container_t, level: 's0:c1,c2'}}": "",
		"securityContext: {seLinuxOptions: {type: container_kvm_t}}":                   "",
		sysctl("kernel.msgmax",
			"65536"): "spec.podSecurityContext.sysctls",
		sysctl("net/ipv4/ip_forward",
			"1"): "spec.podSecurityContext.sysctls",
		sysctl("net.ipv4.ip_local_reserved_ports", "3306,33061"): "",
		sysctl("net.ipv4.tcp_keepalive_time", "60"):              "",
	} {
		t.Run(spec, func(t *testing.T) {
			judge(t, c.Create(context.Background(), cluster(t, "secure", spec), client.DryRunAll), refused)
		})
	}
}

func sysctl(name, value string) string {
	return fmt.Sprintf("podSecurityContext: {sysctls: [{name: net.ipv4.tcp_syncookies, value: '1'}, {name: %s, "+
		"value: %q}]}", name, value)
}

func unconfined(container, profile string) string {
	return fmt.Sprintf(
		"inheritedMetadata: {annotations: {a: b, container.apparmor.security.beta.kubernetes.io/%s: %s}}", container,
		profile)
}

func TestRulesForTheName(t *testing.T) {
	c := api(t)
	for name, refused := range map[string]string{
		"a":                     "",
		"db-2":                  "",
		strings.Repeat("a", 50): "",
		strings.Repeat("a", 51): "choose a shorter name",
		"2db":                   "must begin with a letter",
		"shop.db":               "must begin with a letter",
	} {
		t.Run(name, func(t *testing.T) {
			judge(t, c.Create(context.Background(), cluster(t, name, "{}"), client.DryRunAll), refused)
		})
	}
}

func TestRulesForAChange(t *testing.T) {
	c := api(t)
	for name, r := range map[string]struct{ before, after, refused string }{
		"more instances":        {"instances: 1", "instances: 3", ""},
		"more storage":          {"storage: {size: 1Gi}", "storage: {size: 2048Mi}", ""},
		"same storage, respelt": {"storage: {size: 2Gi}", "storage: {size: 2048Mi}", ""},
		"less storage": {"storage: {size: 2Gi}", "storage: {size: 1Gi}",
			"spec.storage.size cannot be lowered"},
		"class kept": {"storage: {size: 1Gi, storageClass: a}",
			"storage: {size: 2Gi, storageClass: a}", ""},
		"class changed": {"storage: {size: 1Gi, storageClass: a}", "storage: {size: 1Gi, storageClass: b}",
			"spec.storage.storageClass cannot be changed"},
		"class added": {"storage: {size: 1Gi}", "storage: {size: 1Gi, storageClass: b}",
			"spec.storage.storageClass cannot be changed"},
		"class removed": {"storage: {size: 1Gi, storageClass: a}", "storage: {size: 1Gi}",
			"spec.storage.storageClass cannot be changed"},
		"bootstrap kept": {"bootstrap: {initdb: {database: a}}", "{instances: 3, bootstrap: {initdb: " +
			"{database: a}}}", ""},
		"bootstrap changed": {"bootstrap: {initdb: {database: a}}", "bootstrap: {initdb: {database: b}}",
			"spec.bootstrap is used once"},
		"bootstrap added":   {"{}", "bootstrap: {initdb: {database: a}}", "spec.bootstrap is used once"},
		"bootstrap removed": {"bootstrap: {initdb: {database: a}}", "{}", "spec.bootstrap is used once"},
		"durability raised": {"instances: 3", "{instances: 3, mysql: {semiSync: {enabled: true, " +
			"dataDurability: quorum}}}", ""},
		"too few instances for W": {"{instances: 3, minSyncReplicas: 2, mysql: {semiSync: {enabled: true}}}",
			"{instances: 2, minSyncReplicas: 2, mysql: {semiSync: {enabled: true}}}", "lower minSyncReplicas or " +
				"raise instances"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			u := cluster(t, "change", r.before)
			if err := c.Create(ctx, u); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Delete(ctx, u) })
			after := cluster(t, "change", r.after)
			after.SetResourceVersion(u.GetResourceVersion())
			judge(t, c.Update(ctx, after, client.DryRunAll), r.refused)
		})
	}
}

package crd

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestWhatIsSoAnywayMayBeSaid: manifests that name it apply unchanged, for a strict client, too.
// The other value is refused for a client that is not strict.
func TestWhatIsSoAnywayMayBeSaid(t *testing.T) {
	c := api(t)
	for spec, refused := range map[string]string{
		"replication: {heartbeat: {enabled: false}}":               "",
		"replication: {heartbeat: {enabled: false, interval: 1s}}": "",
		"replication: {heartbeat: {enabled: true}}":                "remove it, or set enabled: false",
		"replication: {heartbeat: {interval: 1s}}":                 "spec.replication.heartbeat is not supported",
		"replication: {heartbeat: {}}":                             "spec.replication.heartbeat is not supported",

		"nodeMaintenanceWindow: {inProgress: false, reusePVC: true}": "",
		"nodeMaintenanceWindow: {inProgress: true}":                  "a drain hands the primary over by itself",
		"nodeMaintenanceWindow: {reusePVC: false}":                   "spec.nodeMaintenanceWindow.reusePVC cannot be false",

		"monitoring: {}": "",
		"monitoring: {enablePodMonitor: false, disableDefaultQueries: false, tls: {enabled: false}, " +
			"customQueriesConfigMap: [], customQueriesSecret: []}": "",
		"monitoring: {enablePodMonitor: true}":                           "",
		"monitoring: {disableDefaultQueries: true}":                      "can only ask for a PodMonitor",
		"monitoring: {customQueriesConfigMap: [{name: mine, key: all}]}": "an exporter of your own for other queries",
		"monitoring: {customQueriesSecret: [{name: mine, key: all}]}":    "an exporter of your own for other queries",
		"monitoring: {metricsQueriesTTL: 30s}":                           "can only ask for a PodMonitor",
		"monitoring: {tls: {enabled: true}}":                             "without TLS",

		"upgrade: {backupBeforeUpgrade: false}": "",
		"upgrade: {backupBeforeUpgrade: true}":  "make a Backup yourself",

		"managed: {roles: []}":               "",
		"managed: {roles: [{name: reader}]}": "accounts would be missing",

		"envFrom: []":                          "",
		"envFrom: [{secretRef: {name: mine}}]": "name the variables in spec.env",

		"backup: {xtrabackupOptions: []}":             "",
		"backup: {xtrabackupOptions: [--parallel=4]}": "MySQL's own clone protocol",

		"mysql: {additionalConfigFiles: {}}":                  "",
		"mysql: {additionalConfigFiles: {a.cnf: '[mysqld]'}}": "spec.mysql.parameters",
	} {
		t.Run(spec, func(t *testing.T) {
			validation := client.FieldValidation("Strict")
			if refused != "" {
				validation = "Ignore"
			}
			judge(t, c.Create(context.Background(), cluster(t, "fixed", spec), client.DryRunAll, validation), refused)
		})
	}
}

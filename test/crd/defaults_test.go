package crd

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// defaults are specs, and what the API server makes of each.
var defaults = map[string]struct{ spec, want string }{
	"minimal": {"{}", `
storage: {size: 1Gi, whenScaled: Retain, whenDeleted: Retain}
instances: 1
mysql: {binlogFormat: ROW}
replication: {mode: async}
failoverDelay: 0
maxSwitchoverDelay: 3600
maxSwitchoverPause: 5
maxStartDelay: 3600
maxStopDelay: 1800
enablePrimaryLease: true
enableSuperuserAccess: false
enablePDB: true
logLevel: info
affinity: {enablePodAntiAffinity: true, podAntiAffinityType: preferred, topologyKey: kubernetes.io/hostname}
`},
	"nested objects that are given, but empty": {"{mysql: {semiSync: {}}, replication: {}, affinity: {}}", `
storage: {size: 1Gi, whenScaled: Retain, whenDeleted: Retain}
instances: 1
mysql: {binlogFormat: ROW, semiSync: {enabled: false, dataDurability: preferred}}
replication: {mode: async}
failoverDelay: 0
maxSwitchoverDelay: 3600
maxSwitchoverPause: 5
maxStartDelay: 3600
maxStopDelay: 1800
enablePrimaryLease: true
enableSuperuserAccess: false
enablePDB: true
logLevel: info
affinity: {enablePodAntiAffinity: true, podAntiAffinityType: preferred, topologyKey: kubernetes.io/hostname}
`},
	"a group": {"replication: {mode: groupReplication, groupReplication: {}}", `
storage: {size: 1Gi, whenScaled: Retain, whenDeleted: Retain}
instances: 1
mysql: {binlogFormat: ROW}
replication:
  mode: groupReplication
  groupReplication: {consistency: BEFORE_ON_PRIMARY_FAILOVER, exitStateAction: READ_ONLY, autoRejoinTries: 3, memberExpelTimeoutSeconds: 0, unreachableMajorityTimeoutSeconds: 0, recoverTotalOutage: Manual}
failoverDelay: 0
maxSwitchoverDelay: 3600
maxSwitchoverPause: 5
maxStartDelay: 3600
maxStopDelay: 1800
enablePrimaryLease: true
enableSuperuserAccess: false
enablePDB: true
logLevel: info
affinity: {enablePodAntiAffinity: true, podAntiAffinityType: preferred, topologyKey: kubernetes.io/hostname}
`},
}

func TestDefaults(t *testing.T) {
	for name, r := range defaults {
		t.Run(name, func(t *testing.T) {
			u := cluster(t, "defaults", r.spec)
			if err := api(t).Create(context.Background(), u, client.DryRunAll); err != nil {
				t.Fatal(err)
			}
			want := map[string]any{}
			if err := yaml.Unmarshal([]byte(r.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(numbers(want), numbers(u.Object["spec"])); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// numbers makes all of them float64, whoever decoded them.
func numbers(v any) any {
	text, err := (&unstructured.Unstructured{Object: map[string]any{"v": v, "kind": "K",
		"apiVersion": "v"}}).MarshalJSON()
	if err != nil {
		return err
	}
	out := map[string]any{}
	if err := yaml.Unmarshal(text, &out); err != nil {
		return err
	}
	return out["v"]
}

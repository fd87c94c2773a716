package crd

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
)

func TestDurationsThatGoCannotReadAreRefused(t *testing.T) {
	c, ctx := api(t), context.Background()
	for spec, refused := range map[string]string{
		"failoverPolicy: {minTimeBetweenFailovers: 1d}":              "a duration is like 10m",
		"failoverPolicy: {minTimeBetweenFailovers: ''}":              "a duration is like 10m",
		"failoverPolicy: {maxReplicationLag: 9999999999999h}":        "a duration is like 10m",
		"failoverPolicy: {primaryStabilityWindow: '30'}":             "a duration is like 10m",
		"failoverPolicy: {primaryStabilityWindow: -1s}":              "a duration is like 10m",
		"failoverPolicy: {primaryStabilityWindow: 1h30m}":            "",
		"backup: {jobTemplate: {ttl: 1d}, objectStore: {bucket: b}}": "a duration is like 10m",
	} {
		t.Run(spec, func(t *testing.T) { judge(t, c.Create(ctx, cluster(t, "d", spec), client.DryRunAll), refused) })
	}
}

// TestOneUnreadableClusterHidesNoOther: an editor of one namespace may write what Go does not read.
func TestOneUnreadableClusterHidesNoOther(t *testing.T) {
	c, ctx, e := api(t), context.Background(), editor(t)
	for spec, status := range map[string]string{
		"resources: {limits: {memory: '1e9.5'}}": "",
		"logLevel: info":                         `{"currentPrimaryTimestamp":"2026-11-22T10:00:00Z"}`,
		"logLevel: debug":                        `{"gtidExecutedUpdatedAt":"2026-11-22t10:00:00z"}`,
	} {
		t.Run(spec+status, func(t *testing.T) {
			u := cluster(t, "unread", spec)
			if err := c.Create(ctx, u, client.FieldValidation("Strict")); err != nil {
				return // so much the better
			}
			t.Cleanup(func() { _ = c.Delete(ctx, u) })
			if status != "" {
				patch, err := json.Marshal(map[string]any{"status": json.RawMessage(status)})
				if err == nil {
					err = e.Status().Patch(ctx, u, client.RawPatch(types.MergePatchType, patch))
				}
				if err != nil {
					return // so much the better
				}
			}
			var all v1alpha1.ClusterList
			if err := c.List(ctx, &all); err != nil {
				t.Fatal(err)
			}
			var one v1alpha1.Cluster
			err := c.Get(ctx, client.ObjectKeyFromObject(u), &one)
			if err != nil || one.Unread() == nil || !strings.Contains(one.Unread().Error(), "cannot be read") {
				t.Errorf("%v: %v", err, one.Unread())
			}
		})
	}
}

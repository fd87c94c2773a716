package crd

import (
	"context"
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestTargetRPOHasBounds(t *testing.T) {
	c := api(t)
	for seconds, refused := range map[int]string{-1: "targetRPOSeconds", 0: "targetRPOSeconds", 1: "", 3600: "",
		3601: "targetRPOSeconds"} {
		t.Run(fmt.Sprint(seconds), func(t *testing.T) {
			spec := fmt.Sprintf("backup: {continuousArchiving: {enabled: true, targetRPOSeconds: %d}, objectStore: %s}",
				seconds, somewhere)
			judge(t, c.Create(context.Background(), cluster(t, "archiving", spec), client.DryRunAll), refused)
		})
	}
}

func TestWhatIsArchivedAreRows(t *testing.T) {
	c := api(t)
	for name, r := range map[string]struct{ format, enabled, refused string }{
		"statements":                  {"mysql: {binlogFormat: STATEMENT}", "true", "set binlogFormat: ROW"},
		"statements, and no archive":  {"mysql: {binlogFormat: STATEMENT}", "false", ""},
		"rows where that is safer":    {"mysql: {binlogFormat: MIXED}", "true", ""},
		"rows":                        {"mysql: {binlogFormat: ROW}", "true", ""},
		"what is so when nobody says": {"mysql: {}", "true", ""},
	} {
		t.Run(name, func(t *testing.T) {
			spec := fmt.Sprintf("{%s, backup: {continuousArchiving: {enabled: %s}, objectStore: %s}}",
				r.format, r.enabled, somewhere)
			judge(t, c.Create(context.Background(), cluster(t, "archiving", spec), client.DryRunAll), r.refused)
		})
	}
}

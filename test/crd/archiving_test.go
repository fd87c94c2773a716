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

package crd

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Jobs are made from it in all three places.
var jobTemplates = map[string]string{
	"Backup":          "{cluster: {name: db}, jobTemplate: %s}",
	"ScheduledBackup": "{schedule: '0 0 2 * * *', cluster: {name: db}, jobTemplate: %s}",
	"Cluster":         "{storage: {size: 1Gi}, backup: {jobTemplate: %s}}",
}

// What it holds is in the memory of the operator of all namespaces.
func TestAJobTemplateIsBounded(t *testing.T) {
	c := api(t)
	many := make([]string, 65)
	for i := range many {
		many[i] = fmt.Sprintf("k%d: v", i)
	}
	for template, refused := range map[string]string{
		"{labels: {team: shop}, annotations: {linkerd.io/inject: disabled}}": "",
		"{labels: {" + strings.Join(many[1:], ", ") + "}}":                   "",
		"{annotations: {" + strings.Join(many[1:], ", ") + "}}":              "",
		"{annotations: {k: " + strings.Repeat("x", 8192) + "}}":              "",
		"{labels: {" + strings.Join(many, ", ") + "}}":                       "must have at most 64",
		"{annotations: {" + strings.Join(many, ", ") + "}}":                  "must have at most 64",
		"{annotations: {k: " + strings.Repeat("x", 8193) + "}}":              "annotations.k: Too long",
		"{labels: {team: data platform}}":                                    "the value of a label holds only",
	} {
		judgeTemplate(t, c, template, refused)
	}
	statements := func(n, size int) string {
		all := strings.TrimSuffix(strings.Repeat("'"+strings.Repeat("x", size)+"', ", n), ", ")
		return "bootstrap: {initdb: {postInitSQL: [" + all + "]}}"
	}
	for spec, refused := range map[string]string{statements(256, 9): "", statements(1, 16384): "",
		statements(257, 9): "must have at most 256 items", statements(1, 16385): "postInitSQL[0]: Too long"} {
		judge(t, c.Create(context.Background(), cluster(t, "bounded", "{"+spec+"}"), client.DryRunAll), refused)
	}
}

func judgeTemplate(t *testing.T, c client.Client, template, refused string) {
	t.Helper()
	for kind, spec := range jobTemplates {
		made := object(t, kind, "templated", fmt.Sprintf(spec, template))
		judge(t, c.Create(context.Background(), made, client.DryRunAll), refused)
	}
}

// The operator makes the Job, as it makes an instance's Pod.
func TestAJobTemplateGivesNoNodeAway(t *testing.T) {
	c := api(t)
	for profile, refused := range map[string]string{"unconfined": "more than a backup on the node",
		"runtime/default": "", "localhost/mine": ""} {
		annotation := "container.apparmor.security.beta.kubernetes.io/backup: " + profile
		judgeTemplate(t, c, "{annotations: {"+annotation+"}}", refused)
	}
}

// Command names writes docs/names.md: every name that the product says, and what it means.
package main

import (
	"fmt"
	"os"
	"strings"

	"cnmsql.co/internal/core"
)

// chapters of the page, one for each kind of names.
var chapters = []struct {
	kind  core.Kind
	title string
	intro string
}{
	{core.KindDiagnosis, "Diagnoses", "`status.diagnosis`, and the metric `cnmsql_cluster_diagnosis`: what is known " +
		"of the primary. " +
		"*Writes* is whether its mysqld takes them; *replaced* whether a failover begins."},
	{core.KindRefusal, "Refusals", "Why something is not done. What blocks the Cluster is `status.blocked.reason`, " +
		"the reason of the conditions Ready and Degraded, an event, and the metric `cnmsql_cluster_blocked`. What " +
		"stands beside it is `status.notices[].reason`, an event, and the metric `cnmsql_cluster_notice`. A request " +
		"that is refused or dropped, as a switchover or a `reinit`, is an event only, and counted by " +
		"`cnmsql_cluster_events_total`: the Cluster goes on as before."},
	{core.KindProblem, "What you have to mend first", "As refusals: what is missing beside the instances."},
	{core.KindBackup, "Backups", "`status.reason` of a Backup, and its events."},
	{core.KindVerify, "Verifications", "`status.lastVerification.reason`, the reason of the condition " +
		"`BackupsVerified`, and events."},
	{core.KindEvent, "Events", "What was done, or has happened. What is a notice as well stands in `status.notices` " +
		"and in the metric `cnmsql_cluster_notice` until it ends."},
	{core.KindOperation, "Operations", "`status.operation.kind`."},
	{core.KindStep, "Steps", "`status.operation.step`."},
	{core.KindProof, "Proofs", "`status.promotion.proof`: why nobody else takes writes."},
	{core.KindInstance, "Reasons of an instance", "`status.instancesReported[].reason`, and the label `reason` of " +
		"the metric `cnmsql_state`: why an instance is in its state. " +
		"A Pod that does not run has Kubernetes' own reason there."},
	{core.KindOrder, "Refused orders", "In the message of an event `ActionFailed`, and in logs: why an instance did " +
		"not do what the operator, or another instance, asked for. Each is tried again."},
}

func main() {
	if err := os.WriteFile("docs/names.md", []byte(page()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "names:", err)
		os.Exit(1)
	}
}

func page() string {
	var b strings.Builder
	b.WriteString("# Names\n\nEvery name that cnmsql says, what it means, and where more is said. Search this page " +
		"for the word that you see. (Made by `make generate` from `internal/core/catalogue.go`.)\n")
	for _, c := range chapters {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n%s", c.title, c.intro, header(c.kind))
		for _, e := range core.Catalogue() {
			if e.Kind == c.kind {
				b.WriteString(row(e))
			}
		}
	}
	return b.String()
}

func header(k core.Kind) string {
	if k == core.KindDiagnosis {
		return "| name | means | writes | replaced | more |\n|---|---|---|---|---|\n"
	}
	return "| name | means | more |\n|---|---|---|\n"
}

func row(e core.Entry) string {
	implies := ""
	if e.Kind == core.KindDiagnosis {
		implies = implied(core.Diagnosis(e.Name))
	}
	if e.Attention() == core.AwaitsHuman {
		e.Means += ". Alert of the notice: `CnmsqlNotice`"
	}
	file, _, _ := strings.Cut(e.See, ".md")
	return fmt.Sprintf("| `%s` | %s | %s[%s](%s) |\n", e.Name, e.Means, implies,
		file[strings.LastIndex(file, "/")+1:], e.See)
}

func implied(d core.Diagnosis) string {
	writes := "no"
	switch {
	case d.TakesWrites() && !d.EndsCommits():
		writes = "yes, and commits hang"
	case d.TakesWrites():
		writes = "yes"
	case d.IsUnreachable():
		writes = "not known"
	}
	replaced := "–"
	if d.BeginsFailover() {
		replaced = "yes"
	}
	return writes + " | " + replaced + " | "
}

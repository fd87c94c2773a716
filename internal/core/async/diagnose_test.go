package async

import (
	"strings"
	"testing"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/doctable"
)

// diagnosed is what docs/failover.md says of a diagnosis beside when it is made.
type diagnosed struct{ means, does string }

var diagnosisWords = map[core.Diagnosis]diagnosed{
	core.DiagnosisNone: {"a new cluster", "wait; if it lasts, the phase reason says what is missing"},
	core.PrimaryFenced: {"mysqld is stopped on purpose",
		"writes stop, and **no instance takes over**, until `kubectl cnmsql fence off`"},
	core.PrimaryDataLost: {"its PVC was deleted or replaced",
		"failover; if no instance can take over, nothing is initialised again: bring a replica back"},
	core.PrimaryFailed: {"it cannot run or reach mysqld (`DiskFull`, `ConfigRefused`, `LoginRefused`, " +
		"`ForeignData`, …)",
		"failover; mend the reason, see [troubleshooting](troubleshooting.md#an-instance-says-failed)"},
	core.PrimaryHung: {"stuck storage, a lock, no CPU", "failover; mysqld is killed if it does not become read-only " +
		"in 0.2 s. If no instance can take over, mysqld first has a minute to answer. A mysqld is not hung if only " +
		"logins hang, because a statement that changes an account waits for acknowledgements. If the volume is " +
		"stalled, the manager cannot write its promise: the primary is replaced like one [that cannot be " +
		"reached](#a-primary-that-nobody-can-reach)"},
	core.PrimaryLostTransactions: {"its storage lost or turned back writes, and it [did not hear of that]" +
		"(#a-primary-that-has-lost-writes-stays-closed) in time",
		"nothing is promoted or cloned; **you** decide, [see below](#primarylosttransactions)"},
	core.PrimaryTerminating: {"drain, deletion, eviction", "a switchover to a replica that can take over"},
	core.PrimaryIsolated: {"a network fault between instances. A replica that is refused (*Access denied*, too many " +
		"connections) has reached it, and does not count; nor does one [whose volume is full]" +
		"(runbooks.md#the-disk-is-full)",
		"replaced after 5 s (or `failoverDelay`, if that is longer). If replicas do not reach the new primary " +
			"either, another instance is tried after 30 s, and so on ([`FailoverDamped`](#refusals))"},
	core.PrimaryFull: {"mysqld waits in the commit until there is space",
		"no instance is promoted: the other volumes are most likely as full " +
			"([why](design/2026-11-27-full-primary.md)). " +
			"**You** make space: [the disk is full](runbooks.md#the-disk-is-full)"},
	core.PrimaryHealthy: {"the primary is healthy", "nothing"},
	core.PrimaryFollows: {"the Cluster is a replica of [an external server](import.md#follow-the-server)",
		"nothing, unless the notice `" +
			string(core.ReasonNotFollowing) + "` says that it does not receive"},
	core.PrimaryClosed: {"no replica with data is attached: a commit would wait for a replica, and a copy of the " +
		"data would wait for the commit", "[it takes writes again by " +
		"itself](durability.md#the-primary-is-closed-for-a-copy)"},
	core.PrimaryDemoted: {"a switchover or failover is under way", "it goes on"},
	core.PrimaryPromoting: {"it applies what it received, and takes the Lease",
		"wait; the phase reason says what it does"},
	core.MysqldDown: {"a crash, an OOM kill of mysqld, a restart; or it was promoted and lacks transactions that no " +
		"instance can send it any more, because the data of the former primary is gone",
		"failover; if no instance can take over, mysqld is started again in place"},
	core.PodGone: {"a lost node, a deleted or evicted Pod", "failover, as soon as there is a proof"},
	core.PrimaryUnreachableButReplicasStream: {"a network fault between operator and Pod",
		"the operator **never** acts on this. Check the network"},
	core.PrimaryUnreachableReplicasLost: {"a lost node, a network partition", "failover: by `QuorumCut` within " +
		"seconds under `quorum`, else by `LeaseExpired`; [how](#a-primary-that-nobody-can-reach)"},
	core.PrimaryUnreachable: {"nothing is known of mysqld", "nothing: unknown is not down. The phase reason says in " +
		"brackets [why the manager cannot be reached](runbooks.md#why-a-manager-cannot-be-reached)"},
}

// diagnosisRows are the rules, and below the healthy primary the name that publish shows for one that follows an
// external server.
func diagnosisRows() (rows [][]string) {
	seen := map[core.Diagnosis]bool{}
	add := func(name core.Diagnosis, where string) {
		words := diagnosisWords[name]
		if seen[name] {
			words = diagnosed{"as above", "as above"}
		}
		seen[name] = true
		rows = append(rows, []string{doctable.Code(name), where, words.means, words.does})
	}
	for _, r := range rules {
		add(r.name, r.where)
		if r.name == core.PrimaryHealthy {
			add(core.PrimaryFollows, "it follows an external server, and takes no writes")
		}
	}
	return rows
}

func TestTheDocumentHasTheTableOfDiagnoses(t *testing.T) {
	rows := diagnosisRows()
	shown := map[string]bool{}
	for _, row := range rows {
		shown[row[0]] = true
		for _, cell := range row {
			if cell == "" {
				t.Errorf("the row of %s has an empty cell: diagnosisWords and rules have the words", row[0])
			}
		}
	}
	for _, e := range core.Catalogue() {
		isOfGroup := strings.HasPrefix(e.See, "group-replication.md")
		if e.Kind == core.KindDiagnosis && !isOfGroup && !shown[doctable.Code(e.Name)] {
			t.Errorf("no rule is of the diagnosis %s", e.Name)
		}
	}
	doctable.Check(t, "../../../docs/failover.md", doctable.Table{Name: "diagnoses",
		Head: []string{"name", "what you see", "what it means", "what happens, and what to do"}, Rows: rows})
}

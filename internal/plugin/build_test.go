package plugin

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/version"
)

var update = flag.Bool("update", false, "write testdata again")

const uuid1, uuid2 = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"

var now = time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)

func set(text string) gtid.Set {
	s, err := gtid.Parse(text)
	if err != nil {
		panic(err)
	}
	return s
}

func TestTheTableOfEachSituation(t *testing.T) {
	for name, situation := range situations {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := WriteTable(&out, Build(*situation())); err != nil {
				t.Fatal(err)
			}
			golden(t, name+".txt", out.String())
		})
	}
}

func TestTheListOfClusters(t *testing.T) {
	var all []Report
	for _, situation := range []func() *Facts{healthy, failover, blocked, untouched, deserted} {
		f := situation()
		all = append(all, Build(Facts{Cluster: f.Cluster, Pods: f.Pods, Now: now}))
	}
	var out strings.Builder
	if err := WriteList(&out, all, nil); err != nil {
		t.Fatal(err)
	}
	golden(t, "list.txt", out.String())
}

func TestTheReportAsYAML(t *testing.T) {
	var out strings.Builder
	if err := encode(&out, "yaml", Build(*diverged())); err != nil {
		t.Fatal(err)
	}
	golden(t, "diverged.yaml", out.String())
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test ./internal/plugin -update writes it again); got:\n%s", path, got)
	}
}

func TestTheFirstLinesAnswerWhatIsAskedAtNight(t *testing.T) {
	for name, situation := range situations {
		var out strings.Builder
		if err := WriteTable(&out, Build(*situation())); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(out.String(), "\n")
		for i, label := range []string{"Cluster", "Writable", "Primary", "Happening", "To do"} {
			if !strings.HasPrefix(lines[i], label) {
				t.Errorf("%s: line %d is %q, not %s", name, i+1, lines[i], label)
			}
		}
	}
}

func TestTransactionsThePrimaryStillCommitsAreNotErrant(t *testing.T) {
	f := healthy()
	f.live("demo-2").Server.Executed = set(uuid1 + ":1-1001")
	if in := instanceOf(f, "demo-2"); *in.Errant != 0 {
		t.Errorf("errant: %d %s", *in.Errant, in.ErrantSet)
	}
}

func TestLagIsUnknownWhileNothingIsReceived(t *testing.T) {
	if in := instanceOf(blocked(), "demo-2"); in.Lag != nil {
		t.Errorf("lag is %v though demo-2 does not receive", *in.Lag)
	}
}

func TestTheVersionIsTheOneThatWasBuilt(t *testing.T) {
	before := version.Version
	defer func() { version.Version = before }()
	version.Version = "1.2.3"
	var out bytes.Buffer
	cmd := versionCommand()
	cmd.SetOut(&out)
	if err := cmd.Execute(); err != nil || !strings.HasPrefix(out.String(), "kubectl-cnmsql 1.2.3 ") {
		t.Errorf("it says %q, %v", out.String(), err)
	}
}

func TestWhenErrantTransactionsWereCommittedIsTold(t *testing.T) {
	at := time.Date(2026, 11, 21, 3, 0, 1, 0, time.UTC)
	for want, times := range map[string]*core.Times{
		"they were committed at 2026-11-21 03:00:01 UTC": {First: at, Last: at},
		"they were committed from 2026-11-21 03:00:01 UTC to 2026-11-21 03:00:05 UTC (not known of 2 of them)": {
			First: at, Last: at.Add(4 * time.Second), Unknown: 2},
	} {
		f := healthy()
		r := f.live("demo-2")
		r.Errant, r.ErrantTimes = set(uuid2+":7-9"), times
		if in := instanceOf(f, "demo-2"); !slices.Contains(in.Notes, want) {
			t.Errorf("%q is not among %q", want, in.Notes)
		}
	}
}

func TestWhatKubernetesRefusedIsToBeCorrected(t *testing.T) {
	f := healthy()
	f.Cluster.Status.Notices = []v1alpha1.Notice{{Reason: string(core.ReasonActionFailed),
		Message: "could not make a Pod"}}
	if r := Build(*f); len(r.ToDo) != 1 || !strings.Contains(r.ToDo[0], "see why it could not be done") {
		t.Errorf("to do: %q", r.ToDo)
	}
}

func TestRefusedParametersAreToBeCorrected(t *testing.T) {
	f := healthy()
	f.Cluster.Status.Notices = []v1alpha1.Notice{{Reason: string(core.RefusalParameters), Subject: "demo-1"}}
	if r := Build(*f); len(r.ToDo) != 1 || !strings.Contains(r.ToDo[0], "correct spec.mysql.parameters") {
		t.Errorf("to do: %q", r.ToDo)
	}
}

// What stands in spec.bootstrap cannot be corrected in place: no advice may say so.
func TestAFailedBootstrapIsToBeMadeAgain(t *testing.T) {
	for _, reason := range []core.Reason{core.InstanceStartFailed, core.InstancePostInitSQLFailed} {
		f := healthy()
		f.phase(core.PhaseBlocked, core.PrimaryPromoting, "demo-1: "+string(reason))
		f.Cluster.Status.Blocked = &v1alpha1.Notice{Reason: string(reason)}
		if r := Build(*f); slices.ContainsFunc(r.ToDo, func(line string) bool {
			return strings.Contains(line, "delete this Cluster")
		}) {
			t.Errorf("%s in a cluster that has had a primary: %q", reason, r.ToDo)
		}
		f.Cluster.Status.EstablishedAt = nil
		if r := Build(*f); len(r.ToDo) == 0 || !strings.Contains(r.ToDo[0], "kubectl delete clusters.mysql.cnmsql.co "+
			"demo -n shop") {
			t.Errorf("%s: %q", reason, r.ToDo)
		}
	}
}

// A restore fails for what stands in spec.bootstrap, or for a store or a Secret that can be corrected.
func TestAFailedRestoreIsMendedOrMadeAnew(t *testing.T) {
	f := healthy()
	f.phase(core.PhaseBlocked, core.PrimaryPromoting, "demo-1: RestoreFailed: TargetBeforeBackup")
	f.Cluster.Status.Blocked = &v1alpha1.Notice{Reason: string(core.InstanceRestoreFailed)}
	f.Cluster.Status.EstablishedAt = nil
	r := Build(*f)
	if len(r.ToDo) < 2 || r.ToDo[0] != mendIt || !strings.Contains(r.ToDo[1], "spec.bootstrap, which cannot be "+
		"changed: delete this Cluster") || !strings.Contains(r.ToDo[1], "kubectl get pvc -n shop -l "+
		"mysql.cnmsql.co/cluster=demo") {
		t.Errorf("to do: %q", r.ToDo)
	}
}

func TestAVolumeThatGoesWithItsPodIsSomethingToDo(t *testing.T) {
	f := healthy()
	f.Cluster.Status.Notices = []v1alpha1.Notice{{Reason: string(core.ReasonVolumeHeld), Subject: "demo-1"}}
	if r := Build(*f); len(r.ToDo) != 1 || !strings.Contains(r.ToDo[0], "its data is gone when the Pod stops") {
		t.Errorf("to do: %q", r.ToDo)
	}
}

func TestWhatHoldsAPodThatIsBeingDeletedIsNamed(t *testing.T) {
	f := healthy()
	pod := f.Pods["demo-2"]
	pod.DeletionTimestamp, pod.Finalizers = &metav1.Time{Time: now}, []string{"example.com/keep", "example.com/more"}
	want := "its Pod is being deleted, and is not removed before its metadata.finalizers are: example.com/keep, " +
		"example.com/more"
	if in := Build(*f).Instances[1]; !slices.Contains(in.Notes, want) {
		t.Errorf("of %s it is said: %q", in.Name, in.Notes)
	}
}

// A primary that is restarted goes on under the former promotion, which was granted long ago.
func TestARestartDoesNotMakeAPromotionLong(t *testing.T) {
	f := healthy()
	s := &f.Cluster.Status
	s.Promotion.Epoch, s.Promotion.WritableSince = 5, at(time.Minute)
	s.LastOperations = []v1alpha1.PastOperation{{Kind: "Failover", From: "demo-1", Primary: "demo-1", Epoch: 5,
		StartedAt: at(2 * time.Minute), EndedAt: at(time.Minute)}}
	text := page{now: now}.promotion(Build(*f).Promotion)
	const want = "granted 2026-02-27 01:59:59Z, writable again since 2026-03-01 02:59:00Z, after a restart"
	if !strings.HasSuffix(text, want) {
		t.Error(text)
	}
	s.LastOperations[0].StartedAt = at(time.Second) // a switchover that came to nothing
	if text := (page{now: now}).promotion(Build(*f).Promotion); strings.Contains(text, "restart") {
		t.Error(text)
	}
}

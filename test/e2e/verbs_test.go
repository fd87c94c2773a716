//go:build e2e

package e2e

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/test/testbed"
	"cnmsql.co/test/writer"
)

// world is one Cluster in a namespace of its own.
type world struct {
	t   complaining
	ctx context.Context
	key types.NamespacedName

	// since is when this test began, and told the events that there were then.
	since time.Time
	told  map[types.UID]string
}

// complaining is a test that keeps what went wrong, to be said again after all else
// that is shown: the end is what everybody reads.
type complaining struct {
	*testing.T
	complaints *[]string
}

func (c complaining) Errorf(format string, args ...any) {
	c.Helper()
	*c.complaints = append(*c.complaints, c.Name()+": "+fmt.Sprintf(format, args...))
	c.T.Errorf(format, args...)
}

func (c complaining) Error(args ...any) {
	c.Helper()
	c.Errorf("%s", fmt.Sprintln(args...))
}

func (c complaining) Fatalf(format string, args ...any) {
	c.Helper()
	c.Errorf(format, args...)
	c.FailNow()
}

func (c complaining) Fatal(args ...any) {
	c.Helper()
	c.Fatalf("%s", fmt.Sprintln(args...))
}

// in returns the same world for a subtest, which begins now.
func (w *world) in(t *testing.T) *world {
	in := &world{t: complaining{t, w.t.complaints}, ctx: w.ctx, key: w.key, since: time.Now(),
		told: map[types.UID]string{}}
	for _, e := range in.events() {
		in.told[e.UID] = e.ResourceVersion
	}
	return in
}

// newWorld makes a namespace that goes with the test; on failure it shows what
// was going on.
func newWorld(t *testing.T, cluster string) *world {
	t.Helper()
	w := newNamespace(t, cluster)
	t.Cleanup(func() {
		if t.Failed() {
			w.show()
		}
	})
	return w
}

// newNamespace makes a namespace that goes with the test.
func newNamespace(t *testing.T, cluster string) *world {
	t.Helper()
	w := worldOf(t, cluster)
	w.emptied()
	t.Cleanup(func() {
		if keep && t.Failed() {
			t.Logf("namespace %s is left as it is", w.key.Namespace)
			return
		}
		w.removed()
	})
	return w
}

// worldOf is the world of a Cluster, whose namespace may be there.
func worldOf(t *testing.T, cluster string) *world {
	// Not the test's own context, which has ended when cleanups run.
	return &world{t: complaining{t, new([]string)}, ctx: context.Background(),
		key: types.NamespacedName{Namespace: "e2e-" + cluster, Name: cluster}, since: time.Now()}
}

// emptied makes the world's namespace, anew if it is there.
func (w *world) emptied() {
	w.t.Helper()
	w.kubectl("delete", "namespace", w.key.Namespace, "--ignore-not-found", "--wait=true")
	w.kubectl("create", "namespace", w.key.Namespace)
}

// removed takes the world's namespace away.
func (w *world) removed() {
	w.t.Helper()
	w.kubectl("delete", "namespace", w.key.Namespace, "--ignore-not-found", "--wait=false")
}

// endsBeforeItsVolumes: the Cluster's Pods end before the directories that were made for its
// volumes so far are removed. mysqld whose files vanish writes its error log as fast as it
// can, and does not end; all tests that follow have less of the machine.
func (w *world) endsBeforeItsVolumes() {
	w.t.Cleanup(func() {
		if w.t.Failed() {
			w.show()
		}
		for _, args := range [][]string{
			{"delete", "cluster", w.key.Name, "--ignore-not-found"}, {"wait", "--for=delete", "pod", "-l",
				v1alpha1.LabelCluster + "=" + w.key.Name, "--timeout=2m"},
		} {
			if out, err := bed.Kubectl(w.ctx, nil, append([]string{"-n", w.key.Namespace}, args...)...); err != nil {
				w.t.Errorf("%v: %v %s", args, err, out)
			}
		}
	})
}

func (w *world) kubectl(args ...string) string {
	w.t.Helper()
	out, err := bed.Kubectl(w.ctx, nil, args...)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *world) show() {
	var text strings.Builder
	bed.Tell(w.ctx, w.key, 40, &text)
	w.t.Log(text.String())
	w.complain()
}

// complain says again what went wrong.
func (w *world) complain() { w.t.Log(strings.Join(*w.t.complaints, "\n")) }

// apply applies the spec (YAML, indented by two) of the world's Cluster.
func (w *world) apply(spec string) {
	w.t.Helper()
	if out, err := w.tryApply(spec); err != nil {
		w.t.Fatal(err, out)
	}
}

func (w *world) tryApply(spec string) (string, error) {
	manifest := fmt.Sprintf("apiVersion: mysql.cnmsql.co/v1alpha1\nkind: Cluster\nmetadata:\n  name: %s\nspec:\n%s\n",
		w.key.Name, strings.TrimRight(spec, "\n"))
	return bed.Kubectl(w.ctx, strings.NewReader(manifest), "-n", w.key.Namespace, "apply", "--server-side",
		"--field-manager=user", "-f", "-")
}

// becomes waits for the Cluster to be as wished.
func (w *world) becomes(within time.Duration, wished func(*v1alpha1.Cluster) bool) *v1alpha1.Cluster {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, within)
	defer cancel()
	c, err := bed.Until(ctx, w.key, wished)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) healthy(within time.Duration) *v1alpha1.Cluster {
	w.t.Helper()
	return w.becomes(within, testbed.Healthy)
}

func (w *world) cluster() *v1alpha1.Cluster {
	w.t.Helper()
	c, err := bed.Get(w.ctx, w.key)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) primary() string { return w.cluster().Status.CurrentPrimary }

// replica is one that is not the primary.
func (w *world) replica() string {
	w.t.Helper()
	return w.replicas()[0]
}

// replicas are all but the primary; there is one at least.
func (w *world) replicas() []string {
	w.t.Helper()
	c := w.cluster()
	names := slices.DeleteFunc(c.Status.InstanceNames, func(name string) bool {
		return name == c.Status.CurrentPrimary
	})
	if len(names) == 0 {
		w.t.Fatal("there is no replica")
	}
	return names
}

// signal sends a signal to a program of an instance: "mysqld", or "cnmsql" for its
// manager.
func (w *world) signal(instance, program string, sig syscall.Signal) time.Time {
	w.t.Helper()
	pid, err := bed.PID(w.ctx, w.key, instance, program)
	if err == nil {
		err = syscall.Kill(pid, sig)
	}
	if err != nil {
		w.t.Fatalf("%v to %s of %s: %v", sig, program, instance, err)
	}
	return time.Now()
}

func (w *world) pod(name string) *corev1.Pod {
	w.t.Helper()
	var pod corev1.Pod
	if err := bed.Client.Get(w.ctx, types.NamespacedName{Namespace: w.key.Namespace, Name: name}, &pod); err != nil {
		w.t.Fatal(err)
	}
	return &pod
}

func (w *world) deletePod(name string, opts ...client.DeleteOption) {
	w.t.Helper()
	if err := bed.Client.Delete(w.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.key.Namespace,
		Name: name}}, opts...); err != nil {
		w.t.Fatal(err)
	}
}

// replaced waits until the Pod of that name is another one than the given.
func (w *world) replaced(old *corev1.Pod, within time.Duration) {
	w.t.Helper()
	err := wait.PollUntilContextTimeout(w.ctx, 100*time.Millisecond, within, true,
		func(ctx context.Context) (bool, error) {
			var pod corev1.Pod
			err := bed.Client.Get(ctx, client.ObjectKeyFromObject(old), &pod)
			if apierrors.IsNotFound(err) {
				return false, nil
			}
			return err == nil && pod.UID != old.UID, err
		})
	if err != nil {
		w.t.Fatalf("Pod %s was not recreated: %v", old.Name, err)
	}
}

func (w *world) killMysqld(instance string) time.Time {
	w.t.Helper()
	at, err := bed.KillMysqld(w.ctx, w.key, instance)
	if err != nil {
		w.t.Fatal(err)
	}
	return at
}

// switchTo asks for a switchover the way the plugin does.
func (w *world) switchTo(instance string) {
	w.t.Helper()
	w.kubectl("-n", w.key.Namespace, "patch", "cluster", w.key.Name, "--subresource=status", "--type=merge",
		"-p", fmt.Sprintf(`{"status":{"targetPrimary":%q}}`, instance))
}

// open logs in through one of the Services, waiting a little for kube-proxy: it
// learns of a route after the operator does.
func (w *world) open(service string) *sql.DB {
	w.t.Helper()
	e, err := bed.Endpoint(w.ctx, w.key, service)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.login(e, w.key.Name+"-"+service)
}

// openInstance logs in to one instance, past the Services.
func (w *world) openInstance(name string) *sql.DB {
	w.t.Helper()
	e, err := bed.InstanceEndpoint(w.ctx, w.key, name)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.login(e, name)
}

func (w *world) login(e testbed.Endpoint, where string) *sql.DB {
	w.t.Helper()
	db, err := e.Open()
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = db.Close() })
	err = wait.PollUntilContextTimeout(w.ctx, 20*time.Millisecond, 30*time.Second, true,
		func(ctx context.Context) (bool, error) {
			return db.PingContext(ctx) == nil, nil
		})
	if err != nil {
		w.t.Fatalf("nobody answers behind %s: %v", where, db.PingContext(w.ctx))
	}
	return db
}

// ask runs a query with one value as its result.
func (w *world) ask(db *sql.DB, query string) string {
	w.t.Helper()
	var value string
	if err := db.QueryRowContext(w.ctx, query).Scan(&value); err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
	return value
}

// load is a writer through -rw.
type load struct {
	*writer.Writer
	w *world
}

// startWriting writes at writePace: whoever does no more than ask whether writes go on needs no load.
func (w *world) startWriting() *load {
	w.t.Helper()
	return w.startWriter(func(e testbed.Endpoint) *writer.Writer { return e.WriterAt(writePace) })
}

// writePace is the time from one write of a connection to its next. Four connections write 200 rows a second, so that
// a gap is known to 5 ms. More rows would take the cores from the servers that are tried.
const writePace = 20 * time.Millisecond

// startWritingOn writes on that many connections, at the writer's own pace.
func (w *world) startWritingOn(connections int) *load {
	w.t.Helper()
	return w.startWriter(func(e testbed.Endpoint) *writer.Writer { return e.WriterOn(connections) })
}

func (w *world) startWriter(to func(testbed.Endpoint) *writer.Writer) *load {
	w.t.Helper()
	e, err := bed.Endpoint(w.ctx, w.key, "rw")
	if err != nil {
		w.t.Fatal(err)
	}
	l := &load{Writer: to(e), w: w}
	if err := l.Start(w.ctx); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { l.Stop() }) // of a step that failed
	l.ackedAfter(time.Now(), 10*time.Second)
	return l
}

// ackedAfter waits for the first acknowledgement of a write begun after t and
// returns how long after t it came.
func (l *load) ackedAfter(t time.Time, within time.Duration) time.Duration {
	l.w.t.Helper()
	ctx, cancel := context.WithTimeout(l.w.ctx, within)
	defer cancel()
	at, err := l.WaitAck(ctx, t)
	if err != nil {
		l.w.t.Fatalf("no write was acknowledged within %s: %v", within, err)
	}
	return at.Sub(t)
}

// outageSince waits for an acknowledgement of a write that was begun a second after a fault, so
// that none counts which was under way, and returns the longest time without one since.
func (l *load) outageSince(fault time.Time, within time.Duration) time.Duration {
	l.w.t.Helper()
	l.ackedAfter(fault.Add(time.Second), within)
	return l.GapSince(fault).Duration()
}

// stopAndLoseNothing stops the writer and holds what was acknowledged against
// what the primary has.
func (l *load) stopAndLoseNothing() writer.Report {
	l.w.t.Helper()
	report := l.Stop()
	v, err := l.VerifyWithin(l.w.ctx, l.w.open("rw"), time.Minute)
	if err != nil {
		l.w.t.Fatal(err)
	}
	if len(v.Missing) > 0 {
		l.w.t.Errorf("I2: %d acknowledged rows are lost, the first: %+v", len(v.Missing), v.Missing[0])
	}
	if len(v.Extra) > 0 {
		l.w.t.Errorf("%d rows are there that the server had refused, the first: %+v", len(v.Extra), v.Extra[0])
	}
	l.w.t.Logf("rows acknowledged %d, lost %d, longest gap %s", report.Acknowledged, len(v.Missing),
		report.LongestGap.Duration())
	return report
}

package instance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/cores"
	"cnmsql.co/test/machine"
)

// idleManager has the test binary be the manager of one instance, as a process of its own.
type idleManager struct {
	Dir, Root string
	Port, N   int
	API       string
	// Profile is a file for a CPU profile; "" for none.
	Profile string
}

const envIdleManager, envIdleProfile = "CNMSQL_TEST_MANAGER", "CNMSQL_IDLE_PROFILE"

func TestMain(m *testing.M) {
	text := os.Getenv(envIdleManager)
	if text == "" {
		code := m.Run()
		_ = os.RemoveAll(template.dir)
		os.Exit(code)
	}
	if err := runIdleManager(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runIdleManager(text string) error {
	var c idleManager
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	if c.Profile != "" {
		stop, err := profileWhenAsked(c.Profile)
		if err != nil {
			return err
		}
		defer stop()
	}
	s := site{dir: c.Dir, root: c.Root, port: c.Port}
	s.mysqld = s.image()
	o := s.options(c.N)
	api := &rest.Config{Host: c.API, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	kube, err := newAPIServer(api, o.Namespace, o.Cluster, func(error) {}, func(bool) {})
	if err != nil {
		return err
	}
	o.Kubernetes, o.LogLevel, o.Log = kube, "", os.Stderr
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cores.RestOnOne()
	return Run(ctx, o)
}

// profileWhenAsked writes a CPU profile from SIGUSR1 on until stop is called.
func profileWhenAsked(file string) (stop func(), err error) {
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	go func() {
		<-asked
		_ = pprof.StartCPUProfile(f)
	}()
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}, nil
}

// startProcess starts the n-th instance's manager as a process of its own.
func (w *world) startProcess(n int, api string) (*node, int) {
	w.t.Helper()
	nd := w.prepare(n)
	c := idleManager{Dir: w.dir, Root: w.root, Port: w.port, N: n, API: api}
	if to := os.Getenv(envIdleProfile); to != "" {
		c.Profile = fmt.Sprintf("%s.%d", to, n)
	}
	text, err := json.Marshal(c)
	must(w.t, err)
	self, err := os.Executable()
	must(w.t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), envIdleManager+"="+string(text))
	cmd.Stderr = w.log.of(nd.opt.Instance)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(w.t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	w.t.Cleanup(func() {
		w.kube.setDeleting()
		must(w.t, cmd.Process.Signal(syscall.SIGTERM))
		select {
		case <-ended:
		case <-time.After(patience):
			_ = cmd.Process.Kill()
			w.t.Errorf("%s does not end", nd.opt.Instance)
		}
	})
	return nd, cmd.Process.Pid
}

// awaitHeard is await of a manager that is another process.
func (w *world) awaitHeard(n *node, what string, ok func(core.Report) bool) {
	w.t.Helper()
	c := w.client(n)
	defer c.Close()
	until(w.t, n.opt.Instance+" is "+what, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		s, err := c.Status(ctx)
		return err == nil && ok(s.Report)
	})
}

// attend is what a cluster at rest is asked from outside: the operator's stream and its
// measurements, and the kubelet's probes.
func (w *world) attend(ctx context.Context, n *node) {
	c := w.client(n)
	go func() {
		defer c.Close()
		if err := c.Watch(ctx, func(control.Snapshot) {}); ctx.Err() == nil {
			w.t.Error(err)
		}
	}()
	every := func(d time.Duration, do func()) {
		tick := time.NewTicker(d)
		defer tick.Stop()
		for ctx.Err() == nil {
			do()
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	}
	go every(15*time.Second, func() { _, _ = c.Status(ctx) })
	kubelet := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for path, period := range map[string]time.Duration{"/readyz": time.Second, "/livez": 5 * time.Second} {
		go every(period, func() {
			resp, err := kubelet.Get(fmt.Sprintf("http://%s:%d%s", n.opt.Listen, n.opt.ProbePort, path))
			if err != nil {
				return
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				w.t.Errorf("%s%s: %d", n.opt.Instance, path, resp.StatusCode)
			}
		})
	}
}

// cost is what a process has needed.
type cost struct {
	computed time.Duration
	// turns is how often it was given a core.
	turns int64
}

func costOf(t *testing.T, pid int) (sum cost) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	must(t, err)
	for _, file := range tasks {
		var computed, waited, turns int64
		if text, err := os.ReadFile(file); err == nil { // else the thread has ended
			_, err = fmt.Sscan(string(text), &computed, &waited, &turns)
			must(t, err)
		}
		sum.computed += time.Duration(computed)
		sum.turns += turns
	}
	return sum
}

// since is what it was in a second, since another moment.
func (c cost) since(before cost, took time.Duration) (percent, turns float64) {
	seconds := took.Seconds()
	return 100 * (c.computed - before.computed).Seconds() / seconds, float64(c.turns-before.turns) / seconds
}

// idlePercent is what a manager at rest may compute at most, in percent of a core. It is far
// above what one needs, and far below what a loop takes that does not wait.
const idlePercent = 2

// childOf is the mysqld of a manager.
func childOf(t *testing.T, pid int) int {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	must(t, err)
	for _, file := range tasks {
		if text, _ := os.ReadFile(file); len(text) > 0 {
			n, err := strconv.Atoi(strings.Fields(string(text))[0])
			must(t, err)
			return n
		}
	}
	t.Fatalf("process %d has no mysqld", pid)
	return 0
}

// TestWhatAnIdleManagerCosts measures three managers and their servers, each a process of
// its own, under quorum and with nothing to do: CNMSQL_IDLE=60s, and CNMSQL_IDLE_PROFILE=FILE
// for CPU profiles FILE.1 to FILE.3. docs/benchmarks.md has what came of it.
func TestWhatAnIdleManagerCosts(t *testing.T) {
	span, err := time.ParseDuration(os.Getenv("CNMSQL_IDLE"))
	if err != nil {
		t.Skip("set CNMSQL_IDLE to how long is to be measured, for example 60s")
	}
	w := newWorld(t, quorum)
	api := httptest.NewServer(w.kube.handler())
	t.Cleanup(api.Close)
	nodes, pids := w.idleCluster(api.URL)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	for _, n := range nodes {
		w.attend(ctx, n)
	}
	<-time.After(12 * time.Second) // what only a beginning needs is over
	var before []cost
	all := pids
	for _, pid := range pids {
		if os.Getenv(envIdleProfile) != "" {
			must(t, syscall.Kill(pid, syscall.SIGUSR1))
		}
		all = append(all, childOf(t, pid))
	}
	for _, pid := range all {
		before = append(before, costOf(t, pid))
	}
	began := time.Now()
	<-time.After(span)
	took := time.Since(began)
	cancel()
	for i, n := range nodes {
		manager, turns := costOf(t, all[i]).since(before[i], took)
		mysqld, its := costOf(t, all[len(nodes)+i]).since(before[len(nodes)+i], took)
		status := fmt.Sprintf("/proc/%d/status", all[i])
		t.Logf("%s: manager %.3f %% of a core in %.0f turns a second; mysqld %.3f %% in %.0f; "+
			"resident %s, of it anonymous %s", n.opt.Instance, manager, turns, mysqld, its,
			machine.Field(status, "VmRSS"), machine.Field(status, "RssAnon"))
		if manager > idlePercent {
			t.Errorf("%s: more than %d %% of a core", n.opt.Instance, idlePercent)
		}
	}
}

// idleCluster is a primary with two replicas, of which one has to acknowledge.
func (w *world) idleCluster(api string) (nodes []*node, pids []int) {
	names := []string{"db-1", "db-2", "db-3"}
	w.kube.edit(func(c *v1alpha1.Cluster) { c.Status.InstanceNames, c.Status.Members = names, names })
	for i := range names {
		n, pid := w.startProcess(i+1, api)
		nodes, pids = append(nodes, n), append(pids, pid)
	}
	epoch := w.grant("db-1", core.ProofBootstrap, "", "", 0)
	w.awaitHeard(nodes[0], "writable", func(r core.Report) bool { return r.WritableEpoch == epoch })
	until(w.t, "db-1 publishes itself", func() bool { return w.kube.get().Status.CurrentPrimary == "db-1" })
	w.kube.edit(func(c *v1alpha1.Cluster) {
		now := metav1.NowMicro()
		c.Status.EstablishedAt = &now
	})
	for _, n := range nodes[1:] {
		w.awaitHeard(n, "awaiting a clone", func(r core.Report) bool {
			return r.State == core.AwaitingClone && r.Server != nil
		})
		w.order(n, control.CloneFrom{Epoch: epoch, Donor: nodes[0].opt.Listen})
		w.awaitHeard(n, "following", func(r core.Report) bool {
			is := r.Server
			return r.Data == core.DataPopulated && is != nil && is.Replication != nil && is.Replication.IORunning
		})
	}
	w.order(nodes[0], control.SetAcks{Epoch: epoch, Acks: 1})
	w.awaitHeard(nodes[0], "waiting for one", func(r core.Report) bool {
		return r.Server != nil && r.Server.SemiSync.Acks == 1
	})
	return nodes, pids
}

// setDeleting: the Cluster is deleted, and nobody has to hand over before it ends.
func (k *fakeKube) setDeleting() {
	k.edit(func(c *v1alpha1.Cluster) {
		now := metav1.Now()
		c.DeletionTimestamp = &now
	})
}

// handler is this API server over HTTP.
func (k *fakeKube) handler() http.Handler {
	const leases = "/apis/coordination.k8s.io/v1/namespaces/ns/leases"
	clusters := "/apis/" + v1alpha1.GroupVersion.String() + "/namespaces/ns/clusters"
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+clusters, func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		w.Header().Set("Content-Type", "application/json")
		k.WatchCluster(r.Context(), func(c *v1alpha1.Cluster) {
			_ = json.NewEncoder(w).Encode(map[string]any{"type": "MODIFIED", "object": typed(c)})
			_ = rc.Flush()
		})
	})
	mux.HandleFunc("GET "+clusters+"/db", func(w http.ResponseWriter, _ *http.Request) { tell(w, typed(k.get()), nil) })
	mux.HandleFunc("PATCH "+clusters+"/db/status", func(w http.ResponseWriter, r *http.Request) {
		var p v1alpha1.Cluster
		err := json.NewDecoder(r.Body).Decode(&p)
		if err == nil {
			err = k.PublishPrimary(r.Context(), p.Status.CurrentPrimary, p.ResourceVersion, time.Now())
		}
		tell(w, typed(k.get()), err)
	})
	mux.HandleFunc("GET "+leases+"/db-primary", func(w http.ResponseWriter, r *http.Request) {
		l, err := k.GetLease(r.Context())
		tell(w, l, err)
	})
	mux.HandleFunc("PUT "+leases+"/db-primary", func(w http.ResponseWriter, r *http.Request) {
		var l coordination.Lease
		err := json.NewDecoder(r.Body).Decode(&l)
		if err == nil {
			_, err = k.UpdateLease(r.Context(), &l)
		}
		tell(w, &l, err)
	})
	return mux
}

func typed(c *v1alpha1.Cluster) *v1alpha1.Cluster {
	c.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Cluster"}
	return c
}

// tell answers as an API server does.
func tell(w http.ResponseWriter, object any, err error) {
	w.Header().Set("Content-Type", "application/json")
	var no *apierrors.StatusError
	switch {
	case errors.As(err, &no):
		w.WriteHeader(int(no.ErrStatus.Code))
		object = no.ErrStatus
	case err != nil:
		w.WriteHeader(http.StatusInternalServerError)
	}
	_ = json.NewEncoder(w).Encode(object)
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cnmsql.co/tools/localkube/internal/archive"
	"cnmsql.co/tools/localkube/internal/cluster"
	"cnmsql.co/tools/localkube/internal/kubebuild"
	"cnmsql.co/tools/localkube/internal/layout"
	"cnmsql.co/tools/localkube/internal/network"
)

const realName = "localkube-smoke"

// real is a cluster of two nodes and what a test asks of it.
type real struct {
	*testing.T
	c *cluster.Cluster
}

// TestRealCluster takes a cluster through its life. It needs root and, the first
// time, the minutes of a build: LOCALKUBE_REAL=1 go test -run Real -v .
func TestRealCluster(t *testing.T) {
	if os.Getenv("LOCALKUBE_REAL") == "" {
		t.Skip("set LOCALKUBE_REAL=1 to bring up a real cluster")
	}
	t.Cleanup(func() { downLeavesNothing(t) })
	r := &real{T: t}
	r.up()
	r.must("load", r.c.Load(t.Context(), buildEcho(t)))
	r.kubectl("apply", "-f", "testdata/echo.yaml")
	r.kubectl("rollout", "status", "statefulset/echo", "--timeout=60s")
	for _, s := range []struct {
		name string
		test func(*real)
	}{
		{"Pods, Services, DNS and the host reach each other", (*real).everybodyTalks},
		{"a partition from nodes spares API server and host", (*real).partitionFromNodes},
		{"a partition from the API server spares nodes and host", (*real).partitionFromAPI},
		{"a partition from all spares nobody", (*real).partitionFromAll},
		{"data and Pod come back after a power loss", (*real).powerLoss},
		{"a kubelet that ends before its node is ready is started again", (*real).kubeletEnds},
		{"up repairs a cluster whose processes were all killed", (*real).killedEverything},
	} {
		if !t.Run(s.name, func(t *testing.T) { s.test(&real{t, r.c}) }) {
			return
		}
	}
}

func (r *real) up() {
	r.Helper()
	_, err := cluster.Up(r.Context(), cluster.Options{Name: realName, Nodes: 2, Cache: kubebuild.DefaultCache()},
		r.Output())
	r.must("up", err)
	r.c, err = cluster.Open(realName, kubebuild.DefaultCache(), r.Output())
	r.must("open", err)
}

func (r *real) everybodyTalks() {
	r.eventually("host to Service", func() error { return fetch("http://" + r.clusterIP("echo")) })
	r.eventually("host to Pod", func() error { return fetch("http://" + r.podIP("echo-1") + ":8080") })
	r.eventually("Pod to Pod by DNS", func() error { return r.fromPod("echo-0", "http://echo-1.peers:8080") })
	r.eventually("Pod to its own Service", func() error { return r.fromPod("echo-0", "http://echo-self") })
	r.eventually("API server to Service", func() error {
		_, err := r.try("get", "--raw", "/api/v1/namespaces/default/services/echo:/proxy/")
		return err
	})
}

func (r *real) partitionFromNodes() {
	r.cutOff(network.FromNodes)
	r.never("Pod to Pod", r.fromPod("echo-0", "http://echo-1.peers:8080"))
	r.eventually("host to Pod", func() error { return fetch("http://" + r.podIP("echo-0") + ":8080") })
}

func (r *real) partitionFromAPI() {
	kubelet := "/api/v1/nodes/" + r.nodeOf("echo-0").Name + "/proxy/healthz"
	r.kubectl("get", "--raw", kubelet)
	r.cutOff(network.FromAPI)
	_, err := r.try("get", "--raw", kubelet, "--request-timeout=3s")
	r.never("API server to kubelet", err)
	r.eventually("host to Pod", func() error { return fetch("http://" + r.podIP("echo-0") + ":8080") })
	r.eventually("Pod to Pod", func() error { return r.fromPod("echo-1", "http://"+r.podIP("echo-0")+":8080") })
}

func (r *real) partitionFromAll() {
	r.cutOff(network.FromAll)
	r.never("host to Pod", fetch("http://"+r.podIP("echo-0")+":8080"))
	r.never("Pod to Pod", r.fromPod("echo-1", "http://"+r.podIP("echo-0")+":8080"))
}

func (r *real) powerLoss() {
	n := r.nodeOf("echo-0")
	before := r.starts("echo-0")
	r.must("poweroff", r.c.PowerOff(r.Context(), n))
	r.never("host to Pod", fetch("http://"+r.podIP("echo-0")+":8080"))
	r.must("poweron", r.c.PowerOn(r.Context(), n))
	r.eventually("one more start on the same volume", func() error { return differs(before, r.starts("echo-0")) })
}

func (r *real) kubeletEnds() {
	n := r.nodeOf("echo-0")
	r.must("poweroff", r.c.PowerOff(r.Context(), n))
	killed := make(chan error, 1)
	go func() { killed <- killOnce(r.Context(), "kubelet", n.Path("kubelet.json")) }()
	r.must("poweron", r.c.PowerOn(r.Context(), n))
	r.must("killing the kubelet", <-killed)
	r.eventually("host to Pod", func() error { return fetch("http://" + r.podIP("echo-0") + ":8080") })
}

// killOnce waits for a program that was started with a configuration, and ends it.
func killOnce(ctx context.Context, program, file string) error {
	for ; ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
		found, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, cmdline := range found {
			text, _ := os.ReadFile(cmdline)
			argv := strings.Split(string(text), "\x00")
			if filepath.Base(argv[0]) == program && slices.Contains(argv, "--config="+file) {
				pid, err := strconv.Atoi(filepath.Base(filepath.Dir(cmdline)))
				return errors.Join(err, syscall.Kill(pid, syscall.SIGKILL))
			}
		}
	}
	return ctx.Err()
}

func (r *real) killedEverything() {
	before := r.starts("echo-1")
	procs, _ := filepath.Glob("/sys/fs/cgroup/*" + r.c.CgroupPath() + "/*/daemons/cgroup.procs")
	var pids []string
	for _, file := range procs {
		data, _ := os.ReadFile(file)
		pids = append(pids, strings.Fields(string(data))...)
	}
	slices.Sort(pids)
	pids = slices.Compact(pids)
	exec.Command("kill", append([]string{"-9"}, pids...)...).Run()
	for _, pid := range pids { // a process that is being killed still runs for a moment
		r.eventually(pid+" has ended", func() error {
			if _, err := os.Stat("/proc/" + pid); err == nil {
				return errors.New("it has not")
			}
			return nil
		})
	}
	r.up()
	r.eventually("Pods are back", func() error { return fetch("http://" + r.podIP("echo-1") + ":8080") })
	r.eventually("one more start on the same volume", func() error { return differs(before, r.starts("echo-1")) })
}

// cutOff heals at the end of the subtest.
func (r *real) cutOff(from network.From) {
	r.Helper()
	n := r.nodeOf("echo-0")
	r.must("partition", r.c.Partition(r.Context(), n, from, network.BothWays))
	r.Cleanup(func() {
		if err := r.c.Heal(context.Background(), n); err != nil {
			r.Error(err)
		}
		r.eventually("healed", func() error { return r.fromPod("echo-0", "http://echo-1.peers:8080") })
	})
}

func (r *real) must(what string, err error) {
	r.Helper()
	if err != nil {
		r.Fatalf("%s: %v", what, err)
	}
}

func (r *real) never(what string, err error) {
	r.Helper()
	if err == nil {
		r.Errorf("%s: still possible", what)
	}
}

func (r *real) eventually(what string, do func() error) {
	r.Helper()
	var err error
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if err = do(); err == nil {
			return
		}
	}
	r.Errorf("%s: %v", what, err)
}

func (r *real) try(args ...string) (string, error) {
	var stderr bytes.Buffer
	cmd := exec.Command(r.c.Kubectl(), append([]string{"--kubeconfig", r.c.Kubeconfig()}, args...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out), nil
}

func (r *real) kubectl(args ...string) string {
	r.Helper()
	out, err := r.try(args...)
	r.must("kubectl", err)
	return out
}

func (r *real) fromPod(pod, url string) error {
	_, err := r.try("exec", pod, "--", "/echo", "get", url)
	return err
}

func (r *real) clusterIP(service string) string {
	return r.kubectl("get", "service", service, "-o", "jsonpath={.spec.clusterIP}")
}

func (r *real) podIP(pod string) string {
	return r.kubectl("get", "pod", pod, "-o", "jsonpath={.status.podIP}")
}

// starts asks until the Pod answers, which may be a while after a fault.
func (r *real) starts(pod string) string {
	answer := ""
	r.eventually(pod+" answers", func() (err error) {
		answer, err = get("http://" + r.podIP(pod) + ":8080")
		return err
	})
	return answer
}

func (r *real) nodeOf(pod string) layout.Node {
	r.Helper()
	n, err := r.c.FindNode(r.kubectl("get", "pod", pod, "-o", "jsonpath={.spec.nodeName}"))
	r.must("node of "+pod, err)
	return n
}

func differs(before, after string) error {
	if before == after {
		return fmt.Errorf("still %q", after)
	}
	return nil
}

func fetch(url string) error {
	_, err := get(url)
	return err
}

// get opens a connection each time: a kept one would survive what is tested.
func get(url string) (string, error) {
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return string(data), err
}

func buildEcho(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "echo")
	cmd := exec.Command("go", "build", "-o", program, "./testdata/echo")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the test image: %v\n%s", err, out)
	}
	binary, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	var tar bytes.Buffer
	image := archive.Image{Name: "localkube.invalid/echo:1", Entrypoint: []string{"/echo"},
		Files: map[string][]byte{"echo": binary}}
	if err := image.Write(&tar); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "echo.tar")
	if err := os.WriteFile(file, tar.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func downLeavesNothing(t *testing.T) {
	plan, _, _ := cluster.Registry().Find(realName)
	sockets := listenersOf(plan)
	if err := cluster.Down(context.Background(), realName, kubebuild.DefaultCache(), t.Output()); err != nil {
		t.Fatal(err)
	}
	mountinfo, _ := os.ReadFile("/proc/self/mountinfo")
	if strings.Contains(string(mountinfo), realName) {
		t.Error("mounts are left")
	}
	for _, pattern := range append(sockets,
		plan.Dir, plan.RunDir(), "/run/netns/localkube-"+realName+"-*",
		"/sys/class/net/"+strings.TrimSuffix(plan.Bridge(), "br")+"*",
		"/sys/fs/cgroup"+plan.CgroupPath(), "/sys/fs/cgroup/*"+plan.CgroupPath(),
		"/var/log/containers/echo-*", "/var/lib/cni/results/"+strings.TrimSuffix(plan.Bridge(), "br")+"*",
	) {
		if left, _ := filepath.Glob(pattern); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
	}
}

// listenersOf are the shims' sockets, which containerd has in one directory for
// all clusters of the machine.
func listenersOf(c layout.Cluster) []string {
	var sockets []string
	for _, n := range c.AllNodes() {
		out, _ := exec.Command("nsenter", "--net="+n.NetnsPath(), "--", "cat", "/proc/net/unix").Output()
		for _, word := range strings.Fields(string(out)) {
			if strings.HasPrefix(word, "/run/containerd/s/") {
				sockets = append(sockets, word)
			}
		}
	}
	return sockets
}

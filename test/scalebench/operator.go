package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"cnmsql.co/test/machine"
)

// process is the operator, as the chart would run it.
type process struct {
	cmd   *exec.Cmd
	log   *os.File
	ended chan struct{}
}

// memoryLimit is what the operator makes of the limit of the chart's Deployment, 512 MiB.
const memoryLimit = "GOMEMLIMIT=460MiB"

const metricsAddress = "127.0.0.1:18080"

func startOperator(binary, kubeconfig, log string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	p := &process{log: out, ended: make(chan struct{}), cmd: exec.Command(binary, "operator",
		"--operator-image", "operator", "--metrics-bind-address", metricsAddress, "--health-probe-bind-address", "0")}
	p.cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, memoryLimit)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// kill ends it as a node that dies does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
	_ = p.log.Close()
}

// reading is what an operator has used until a moment.
type reading struct {
	at            time.Time
	cpu           time.Duration
	reads, writes float64
}

// meter reads what it has used.
func (p *process) meter(ctx context.Context) (r reading, err error) {
	r.at = time.Now()
	if r.cpu, err = p.cpu(); err != nil {
		return r, err
	}
	r.reads, r.writes, err = p.requests(ctx)
	return r, err
}

// cpu is how long it has computed.
func (p *process) cpu() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	user, err := strconv.Atoi(fields[11])
	if err != nil {
		return 0, err
	}
	system, err := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond, err
}

// memory is how many MiB are resident, and the most that were.
func (p *process) memory() (now, most float64) {
	mib := func(name string) float64 {
		kib, _ := strconv.ParseFloat(strings.TrimSuffix(machine.Field(fmt.Sprintf("/proc/%d/status",
			p.cmd.Process.Pid), name), " kB"), 64)
		return kib / 1024
	}
	return mib("VmRSS"), mib("VmHWM")
}

// requests is how many requests it has sent to the API server, those that read and those
// that write.
func (p *process) requests(ctx context.Context) (reads, writes float64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+metricsAddress+"/metrics", nil)
	if err != nil {
		return 0, 0, err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		line := lines.Text()
		if !strings.HasPrefix(line, "rest_client_requests_total{") {
			continue
		}
		n, err := strconv.ParseFloat(line[strings.LastIndex(line, " ")+1:], 64)
		if err != nil {
			return 0, 0, err
		}
		if strings.Contains(line, `method="GET"`) {
			reads += n
		} else {
			writes += n
		}
	}
	return reads, writes, nil
}

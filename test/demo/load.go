package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"

	"cnmsql.co/test/testbed"
)

// writerManifest is of a Pod that writes through the -rw Service, as an application
// would. It runs in the cluster, so that it does not matter where that is.
//
//go:embed writer.yaml
var writerManifest string

var writerPod = types.NamespacedName{Namespace: cluster.Namespace, Name: "writer"}

// load is the writer in its Pod, which is heard through its log.
type load struct {
	bed  *testbed.Bed
	news chan progress
	done chan struct{} // closed at the end of the log; result or err is valid then
	text strings.Builder
	err  error
}

// progress is what the writer says each second.
type progress struct{ acknowledged, fresh int }

// result is what of the writer's last word is told.
type result struct {
	Acknowledged int  `json:"acknowledged"`
	Verified     bool `json:"verified"`
	LongestGap   struct {
		Ms float64 `json:"ms"`
	} `json:"longestGap"`
	VerifyError string `json:"verifyError"`
	Rows        struct {
		Lost  int `json:"lost"`
		Extra int `json:"extra"`
	} `json:"rows"`
}

func (r result) outage() time.Duration {
	return time.Duration(r.LongestGap.Ms * float64(time.Millisecond))
}

// startLoad makes the Pod and waits until it runs.
func startLoad(ctx context.Context, bed *testbed.Bed, image string) (*load, error) {
	manifest := strings.ReplaceAll(writerManifest, "IMAGE", image)
	if _, err := bed.Kubectl(ctx, strings.NewReader(manifest), "-n", cluster.Namespace, "apply",
		"-f", "-"); err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for pod := (&corev1.Pod{}); pod.Status.Phase != corev1.PodRunning; {
		if err := bed.Client.Get(waiting, writerPod, pod); err != nil {
			return nil, err
		}
		if pod.Status.Phase == corev1.PodFailed {
			return nil, fmt.Errorf("the Pod %s has failed: %s", writerPod, why(pod))
		}
		select {
		case <-waiting.Done():
			return nil, fmt.Errorf("the Pod %s does not start: %s", writerPod, why(pod))
		case <-time.After(100 * time.Millisecond):
		}
	}
	l := &load{bed: bed, news: make(chan progress, 1024), done: make(chan struct{})}
	return l, l.listen(ctx)
}

// why tells what the kubelet says of a Pod that should run.
func why(pod *corev1.Pod) string {
	text := string(pod.Status.Phase)
	for _, s := range pod.Status.ContainerStatuses {
		if w := s.State.Waiting; w != nil {
			text += ": " + w.Reason + ": " + w.Message
		}
		if t := s.State.Terminated; t != nil {
			text += ": " + t.Reason + ": " + t.Message
		}
	}
	return text +
		"; the image must hold the demo's writer: build it with docker build --target demo, or with make image"
}

func (l *load) listen(ctx context.Context) error {
	typed, err := typedcore.NewForConfig(l.bed.Config)
	if err != nil {
		return err
	}
	log, err := typed.Pods(writerPod.Namespace).GetLogs(writerPod.Name, &corev1.PodLogOptions{Follow: true}).Stream(ctx)
	if err != nil {
		return fmt.Errorf("read the log of %s: %w", writerPod, err)
	}
	go l.read(log)
	return nil
}

var progressLine = regexp.MustCompile(`acknowledged (\d+) \(\+(\d+)\)`)

// read sorts the log into what is said on the way and the last word, which begins
// with a brace.
func (l *load) read(log io.ReadCloser) {
	defer close(l.done)
	defer func() { _ = log.Close() }()
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		if p := progressLine.FindStringSubmatch(lines.Text()); p != nil && l.text.Len() == 0 {
			acknowledged, _ := strconv.Atoi(p[1])
			fresh, _ := strconv.Atoi(p[2])
			l.news <- progress{acknowledged, fresh}
			continue
		}
		l.text.WriteString(lines.Text() + "\n")
	}
	l.err = lines.Err()
}

// next waits for the next word.
func (l *load) next(ctx context.Context) (progress, error) {
	select {
	case p := <-l.news:
		return p, nil
	case <-l.done:
		return progress{}, fmt.Errorf("the writer has ended (%v):\n%s", l.err, l.text.String())
	case <-ctx.Done():
		return progress{}, context.Cause(ctx)
	}
}

// forget drops what was said before now.
func (l *load) forget() {
	for len(l.news) > 0 {
		<-l.news
	}
}

// end stops the writer, which then compares the table with what was acknowledged.
func (l *load) end(ctx context.Context) (result, error) {
	var r result
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := l.bed.Exec(ctx, writerPod, "writer", "/writer", "--stop"); err != nil {
		return r, err
	}
	select {
	case <-l.done:
	case <-ctx.Done():
		return r, fmt.Errorf("the writer does not end: %w", context.Cause(ctx))
	}
	if err := errors.Join(l.err, json.Unmarshal([]byte(l.text.String()), &r)); err != nil {
		return r, fmt.Errorf("read the writer's last word: %w\n%s", err, l.text.String())
	}
	if !r.Verified {
		return r, fmt.Errorf("the rows could not be compared: %s", r.VerifyError)
	}
	return r, nil
}

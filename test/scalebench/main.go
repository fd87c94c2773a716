// Command scalebench measures an operator with many Clusters: its memory, its work at rest,
// and how soon it reacts to failures. API server and operator are real. The rest of a
// Kubernetes and all instances are played by this process, which serves the real control API
// and obeys as managers do, but has no mysqld. It writes docs/benchmarks.json, and the
// table in docs/benchmarks.md from it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/go-logr/logr"

	"cnmsql.co/test/machine"
	"cnmsql.co/test/scalebench/scale"
)

const (
	jsonFile = "docs/benchmarks.json"
	pageFile = "docs/benchmarks.md"
	// instances of each Cluster.
	instances = 3
)

// options of the command line.
type options struct {
	operator, clusters string
	namespaces         int
	// rest is for how long it is measured what costs nothing but time, and settling how long
	// nothing is, after a start or a failure.
	rest, settling time.Duration
	// crashes is how many primaries crash one after the other.
	crashes int
	save    bool
}

func main() {
	var o options
	flag.StringVar(&o.operator, "operator", "bin/cnmsql", "the operator's binary")
	flag.StringVar(&o.clusters, "clusters", "1,100,1000", "measure with so many Clusters, one after the other")
	flag.IntVar(&o.namespaces, "namespaces", 20, "in how many namespaces they are")
	flag.DurationVar(&o.rest, "for", 60*time.Second, "for how long they rest")
	flag.DurationVar(&o.settling, "settle", 20*time.Second, "measure nothing for so long after a start or a failure")
	flag.IntVar(&o.crashes, "crashes", 9, "how many primaries crash one after the other")
	flag.BoolVar(&o.save, "save", true, "write "+jsonFile+" and "+pageFile)
	flag.Parse()
	ctrllog.SetLogger(logr.Discard())
	debug.SetGCPercent(400) // what is played is not to take the cores from what is measured
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := bench(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "scalebench:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, o options) (err error) {
	dir, err := os.MkdirTemp("", "scalebench")
	if err != nil {
		return err
	}
	defer func() {
		if err == nil {
			_ = os.RemoveAll(dir)
			return
		}
		err = fmt.Errorf("%w; the operator's log is in %s", err, dir)
	}()
	f := &scale.Figures{Run: &scale.Run{Command: command(o), Date: time.Now().UTC().Format(time.DateOnly),
		Commit: machine.Commit(ctx), Machine: machine.Describe(), Namespaces: o.namespaces, Rest: o.rest.Seconds()}}
	if err := measure(ctx, o, dir, f); err != nil {
		return err
	}
	if !o.save {
		return nil
	}
	return errors.Join(f.Save(jsonFile), f.WritePage(pageFile))
}

// command is what measures the same once more.
func command(o options) string {
	text := "make bench-scale"
	for _, f := range []struct{ name, value string }{{"clusters", o.clusters},
		{"namespaces", strconv.Itoa(o.namespaces)}} {
		if has := flag.Lookup(f.name); has != nil && has.DefValue != f.value {
			text += " " + strings.ToUpper(f.name) + "=" + f.value
		}
	}
	return text
}

// measure starts what is needed, and measures row after row.
func measure(ctx context.Context, o options, dir string, f *scale.Figures) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	k, err := startKube(ctx, os.Getenv("CNMSQL_KUBE_BIN"), dir)
	defer func() {
		cancel()
		err = errors.Join(err, k.stop())
	}()
	if err != nil {
		return err
	}
	s := &stage{o: o, fleet: newFleet(k), log: filepath.Join(dir, "operator.log")}
	defer s.end()
	served := make(chan error, 1)
	go func() { served <- s.fleet.serve(ctx) }()
	if err := errors.Join(s.fleet.play(ctx), s.namespaces(ctx)); err != nil {
		return err
	}
	for text := range strings.SplitSeq(o.clusters, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("-clusters: %w", err)
		}
		row, err := s.row(ctx, n)
		if err != nil {
			return fmt.Errorf("with %d Clusters: %w", n, err)
		}
		f.Rows = append(f.Rows, row)
		fmt.Println(f)
	}
	select {
	case err := <-served:
		return err
	default:
		return nil
	}
}

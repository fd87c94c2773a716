// Command loadbench measures how many transactions a second a cluster takes under each
// durability, how long they take and how far replicas are behind, through the -rw Service of a
// real cluster on a local Kubernetes; and the same of a mysqld without an operator, alone and
// in a semi-synchronous pair. It writes docs/benchmarks.json, and the section "Throughput" of
// docs/benchmarks.md from it. `make bench-load` calls it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnmsql.co/test/loadbench/throughput"
	"cnmsql.co/test/loadbench/workload"
	"cnmsql.co/test/machine"
)

const (
	jsonFile = "docs/benchmarks.json"
	pageFile = "docs/benchmarks.md"
)

// allConnections are those of the goals.
const allConnections = "1,16,64,256"

// options of the command line.
type options struct {
	only, workloads string
	connections     string
	warm, window    time.Duration
	rows            int
	dir             string
	save, keep      bool
}

func main() {
	var o options
	const these = "measure only these, separated by commas: "
	flag.StringVar(&o.only, "only", "", these+strings.Join(throughput.Durabilities, ", "))
	flag.StringVar(&o.workloads, "workload", "", these+strings.Join(namesOf(workload.All(1)), ", "))
	flag.StringVar(&o.connections, "connections", allConnections, "with how many connections, separated by commas")
	flag.DurationVar(&o.warm, "warm", 3*time.Second, "how long clients work before anything counts")
	flag.DurationVar(&o.window, "window", 10*time.Second, "how long it counts")
	flag.IntVar(&o.rows, "rows", 100_000, "how many rows the table of oltp_read_write has")
	flag.StringVar(&o.dir, "dir", "/var/lib",
		"where the servers without an operator have their data; on the disk of the local Kubernetes' volumes")
	flag.BoolVar(&o.save, "save", true, "write "+jsonFile+" and "+pageFile+"; without, the table is only printed")
	flag.BoolVar(&o.keep, "keep", false, "leave the local Kubernetes behind")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := bench(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "loadbench:", err)
		os.Exit(1)
	}
}

func namesOf(all []workload.Workload) []string {
	var out []string
	for _, w := range all {
		out = append(out, w.Name())
	}
	return out
}

// plan is what the options ask for.
type plan struct {
	options
	durabilities []string
	kinds        []workload.Workload
	counts       []int
}

func (o options) plan() (*plan, error) {
	p := &plan{options: o}
	all := workload.All(o.rows)
	kinds, err := chosen("-workload", o.workloads, namesOf(all))
	if err != nil {
		return nil, err
	}
	if p.durabilities, err = chosen("-only", o.only, throughput.Durabilities); err != nil {
		return nil, err
	}
	p.kinds = slices.DeleteFunc(all, func(w workload.Workload) bool { return !slices.Contains(kinds, w.Name()) })
	for _, text := range strings.Split(o.connections, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxConnections-spare {
			return nil, fmt.Errorf("-connections: %q is no number from 1 to %d", text, maxConnections-spare)
		}
		p.counts = append(p.counts, n)
	}
	if o.rows < 1 || o.warm < 0 || o.window <= 0 {
		return nil, errors.New("-rows and -window must be more than nothing, and -warm not less")
	}
	return p, nil
}

// chosen are those of all that a list names, in their order; all with an empty list.
func chosen(flag, list string, all []string) ([]string, error) {
	if list == "" {
		return all, nil
	}
	wanted := strings.Split(list, ",")
	for _, name := range wanted {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("%s: there is no %q; there are %s", flag, name, strings.Join(all, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return !slices.Contains(wanted, name) }), nil
}

func bench(ctx context.Context, o options) (err error) {
	p, err := o.plan()
	if err != nil {
		return err
	}
	own, err := newOwn(ctx, o.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.close()) }()
	b := &book{run: p.run(ctx, own.version.String())}
	if o.save {
		if b.list, err = throughput.Open(jsonFile); err != nil {
			return err
		}
		b.file = jsonFile
	} else {
		b.list = &throughput.List{}
	}
	err = p.measure(ctx, own, b)
	if !o.save {
		fmt.Print(b.list.Render())
		return err
	}
	return errors.Join(err, b.list.WritePage(pageFile)) // what was measured before it failed is kept
}

// run tells of what is about to be measured.
func (p *plan) run(ctx context.Context, version string) throughput.Run {
	command := "make bench-load"
	for _, f := range []struct{ variable, value, whole string }{
		{"ONLY", p.only, ""}, {"WORKLOAD", p.workloads, ""}, {"CONNECTIONS", p.connections, allConnections},
	} {
		if f.value != f.whole {
			command += " " + f.variable + "=" + f.value
		}
	}
	return throughput.Run{
		Begun: time.Now().UTC().Format(time.RFC3339), Command: command, Commit: machine.Commit(ctx),
		Machine: machine.Describe(), Server: "MySQL " + strings.SplitN(version, "-", 2)[0],
		TableRows: p.rows, Warm: p.warm.Seconds(), Window: p.window.Seconds(),
	}
}

// book keeps rows as soon as they are measured; with no file, in memory only.
type book struct {
	file string
	run  throughput.Run
	list *throughput.List
}

func (b *book) add(r throughput.Row) error {
	b.list.Add(b.run, r)
	if b.file == "" {
		return nil
	}
	return b.list.Save(b.file)
}

func say(format string, args ...any) { fmt.Printf(time.Now().Format("15:04:05 ")+format+"\n", args...) }

// Command bench measures how long writes are interrupted by faults of the primary,
// through the -rw Service of a real cluster on a local Kubernetes, and what is lost.
// It writes docs/benchmarks.json, and the table in docs/benchmarks.md from it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"cnmsql.co/test/backupbench/figures"
	"cnmsql.co/test/loadbench/throughput"
	"cnmsql.co/test/scalebench/scale"
	"cnmsql.co/test/testbed"
)

const (
	jsonFile = "docs/benchmarks.json"
	pageFile = "docs/benchmarks.md"
)

// options of the command line.
type options struct {
	only, durability string
	runs             int
	budget           time.Duration
	table, keep      bool
	trace, check     bool
	loaded           bool
}

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "measure only these, separated by commas, and again: killed, pod-deleted, "+
		"pod-force-deleted, hung, partitioned, powered-off, long-partitioned, long-powered-off, switchover, floor")
	flag.StringVar(&o.durability, "durability", "", "measure only under these, separated by commas: async, "+
		"semi-sync, quorum, group")
	flag.IntVar(&o.runs, "runs", 10, "how often each fault is done")
	flag.DurationVar(&o.budget, "for", 0, "begin no run after that long; the next call goes on where this one ends")
	flag.BoolVar(&o.table, "table", false, "only write what is made of "+pageFile+" again from "+jsonFile)
	flag.BoolVar(&o.keep, "keep", false, "leave the local Kubernetes behind")
	flag.BoolVar(&o.check, "check", false, "leave "+jsonFile+" as it is, and fail when a budget is missed or a row "+
		"that must not be lost is")
	flag.BoolVar(&o.loaded, "loaded", false, fmt.Sprintf("while %d connections write as fast as they can, "+
		"and every core and the disk are busy", loadedConnections))
	flag.BoolVar(&o.trace, "trace", false, "print the steps of each run, and what the clients saw")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := bench(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// name of the local Kubernetes.
const name = "bench"

// refuse names what was asked for and is not known.
func (o options) refuse() error {
	known := []string{"floor"}
	for _, f := range faults {
		known = append(known, f.name)
	}
	var modes []string
	for _, d := range durabilities {
		modes = append(modes, d.name)
	}
	for _, asked := range []struct {
		list string
		of   []string
	}{{o.only, known}, {o.durability, modes}} {
		for _, name := range strings.Split(asked.list, ",") {
			if name != "" && !slices.Contains(asked.of, name) {
				return fmt.Errorf("%q is none of %s", name, strings.Join(asked.of, ", "))
			}
		}
	}
	return nil
}

func bench(ctx context.Context, o options) error {
	if err := o.refuse(); err != nil {
		return err
	}
	if o.check {
		b := &book{loaded: o.loaded}
		if err := onBed(ctx, o, b); err != nil {
			return err
		}
		fmt.Print(render(b))
		return b.judge()
	}
	b, err := openBook(jsonFile)
	if err != nil {
		return err
	}
	if o.table {
		return writePage(b)
	}
	b.loaded = o.loaded
	return errors.Join(onBed(ctx, o, b), b.save(), writeTable(pageFile, b))
}

// writePage makes all that is made of the page again, that of the other benchmarks too.
func writePage(b *book) error {
	backups, err := figures.Open(jsonFile)
	if err != nil {
		return err
	}
	load, err := throughput.Open(jsonFile)
	if err != nil {
		return err
	}
	many, err := scale.Open(jsonFile)
	if err != nil {
		return err
	}
	return errors.Join(writeTable(pageFile, b), backups.WritePage(pageFile), load.WritePage(pageFile),
		many.WritePage(pageFile))
}

// onBed measures on a local Kubernetes of its own.
func onBed(ctx context.Context, o options, b *book) error {
	if err := testbed.Claim(name); err != nil {
		return err
	}
	begun := time.Now()
	bed, err := testbed.Local(ctx, name, os.Stdout)
	if err != nil {
		return err
	}
	if !o.keep {
		defer func() {
			if err := testbed.Down(context.WithoutCancel(ctx), name, os.Stdout); err != nil {
				fmt.Fprintln(os.Stderr, "bench:", err)
			}
		}()
	}
	if err := bed.Install(ctx, testbed.OperatorImage, testbed.MySQLImage); err != nil {
		return err
	}
	s := &stage{bed: bed, trace: o.trace, loaded: o.loaded}
	over := func() bool { return o.budget > 0 && time.Since(begun) > o.budget }
	if err := s.all(ctx, o, b, over); err != nil || !o.check {
		return err
	}
	return s.whatMissed(ctx, b, over)
}

// chosen reports whether the list holds the name. An empty list holds every name.
func chosen(list, name string) bool {
	return list == "" || slices.Contains(strings.Split(list, ","), name)
}

// all measures what was chosen and is not complete yet.
func (s *stage) all(ctx context.Context, o options, b *book, over func() bool) error {
	if o.only != "" {
		forget(b, o)
	}
	for _, d := range durabilities {
		if err := s.under(ctx, o, b, d.name, d.spec, over); err != nil {
			return err
		}
	}
	if over() || o.loaded || !chosen(o.only, "floor") || o.only == "" && b.Floor != nil {
		return nil
	}
	if err := s.set(ctx, durabilities[0].name, durabilities[0].spec); err != nil {
		return err
	}
	var err error
	b.Floor, err = s.measureFloor(ctx, o.runs)
	return err
}

// under does all faults in turn, so that a call that is cut short has as many runs of
// each.
func (s *stage) under(ctx context.Context, o options, b *book, durability, spec string, over func() bool) error {
	if !chosen(o.durability, durability) {
		return nil
	}
	for n := range o.runs {
		for _, f := range faults {
			if !chosen(o.only, f.name) || f.named && o.only == "" || over() {
				continue
			}
			r := b.row(durability, f.name)
			if len(r.Samples) > n {
				continue
			}
			if err := s.set(ctx, durability, spec); err != nil {
				return err
			}
			if err := s.measure(ctx, f, b, r); err != nil {
				return fmt.Errorf("%s under %s: %w", f.name, durability, err)
			}
		}
	}
	return nil
}

// judgedRuns is of how many runs a median is before it is held against a budget as missed,
// as many as a row of the table has: two slow runs of three are no median.
const judgedRuns = 10

// whatMissed adds runs to each row that misses its budget. All of them count.
func (s *stage) whatMissed(ctx context.Context, b *book, over func() bool) error {
	for _, r := range slices.Clone(b.Rows) {
		if r.budget().isMet(r) {
			continue
		}
		d := durabilities[durabilityOrder(r.Durability)]
		if err := s.under(ctx, options{only: r.Fault, runs: judgedRuns}, b, d.name, d.spec, over); err != nil {
			return err
		}
	}
	return nil
}

// forget drops what is to be measured again.
func forget(b *book, o options) {
	for _, r := range b.Rows {
		if r.Loaded == b.loaded && chosen(o.only, r.Fault) && chosen(o.durability, r.Durability) {
			r.Samples = nil
		}
	}
	b.Rows = slices.DeleteFunc(b.Rows, func(r *row) bool { return len(r.Samples) == 0 })
}

func (s *stage) measure(ctx context.Context, f fault, b *book, r *row) error {
	sample, err := s.run(ctx, f)
	if err != nil {
		return errors.Join(err, s.tell(ctx))
	}
	r.add(sample, load(), time.Now())
	say("%s, %s, run %d: %.2f s, %d acknowledged, %d lost, Healthy after %.1f s", r.title(), r.Durability, r.Runs,
		sample.Gap, sample.Acknowledged, sample.Lost, sample.Healthy)
	return b.save()
}

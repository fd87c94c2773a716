package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"cnmsql.co/test/testbed"
)

func main() {
	var o options
	flag.DurationVar(&o.lasts, "for", time.Hour, "how long faults are drawn")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().Unix()), "draws the same faults again")
	flag.StringVar(&o.name, "name", "soak", "name of the local Kubernetes")
	flag.BoolVar(&o.keep, "keep", false, "leave the local Kubernetes behind")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

type options struct {
	lasts time.Duration
	seed  uint64
	name  string
	keep  bool
}

func run(ctx context.Context, o options) error {
	if err := testbed.Claim(o.name); err != nil {
		return err
	}
	if !o.keep {
		if err := testbed.Down(ctx, o.name, os.Stdout); err != nil {
			return err
		}
		defer func() {
			if err := testbed.Down(context.WithoutCancel(ctx), o.name, os.Stdout); err != nil {
				fmt.Fprintln(os.Stderr, "soak:", err)
			}
		}()
	}
	bed, err := testbed.Local(ctx, o.name, os.Stdout)
	if err != nil {
		return err
	}
	if err := bed.Install(ctx, testbed.OperatorImage, testbed.MySQLImage); err != nil {
		return err
	}
	s := &soak{bed: bed, options: o, drawn: map[string]int{}}
	if err := s.provision(ctx); err != nil {
		return err
	}
	fmt.Printf("seed %d, for %s\n", o.seed, o.lasts)
	err = s.work(ctx)
	if err == nil && len(s.violations) > 0 {
		err = fmt.Errorf("%d violations with seed %d", len(s.violations), o.seed)
	}
	if err != nil {
		s.show(context.WithoutCancel(ctx))
	}
	s.report(os.Stdout) // last: the end of a long output is what is read
	return err
}

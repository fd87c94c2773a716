// Command demo shows what cnmsql does: a three-instance cluster comes up, takes
// writes, loses its primary to kill -9 and is writable again; then it tells what
// it measured.
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
	down := flag.Bool("down", false, "remove the demo and its local Kubernetes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	run := show
	if *down {
		run = remove
	}
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// name of the demo's local Kubernetes.
const name = "demo"

// remove takes away what the demo made. On a Kubernetes of the user's the operator
// stays, with all that its manifest has brought: it may serve others.
func remove(ctx context.Context) error {
	if testbed.IsLocal(ctx, name, os.Getenv("KUBECONFIG")) {
		return testbed.Down(ctx, name, os.Stdout)
	}
	bed, err := testbed.Existing(ctx, os.Getenv("KUBECONFIG"), os.Stdout)
	if err != nil {
		return err
	}
	s := &stage{bed: bed}
	if err := s.clear(ctx); err != nil {
		return err
	}
	say("the namespace %s is gone; the operator stays in %s, and with it its CustomResourceDefinitions, policies "+
		"and roles", cluster.Namespace, testbed.OperatorNamespace)
	return nil
}

func show(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Minute)
	defer cancel()
	s, err := open(ctx)
	if err != nil {
		return err
	}
	for _, act := range []func(context.Context) error{s.clear, s.provision, s.write, s.killPrimary, s.heal, s.verify} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	s.summary()
	if r := s.result.Rows; r.Lost+r.Extra > 0 {
		return fmt.Errorf("%d acknowledged rows were lost, and %d that were refused are there", r.Lost, r.Extra)
	}
	return nil
}

// open brings up a local Kubernetes, or uses the one that KUBECONFIG names where that
// harms nobody, and installs the operator.
func open(ctx context.Context) (*stage, error) {
	kubeconfig := os.Getenv("KUBECONFIG")
	if testbed.IsLocal(ctx, name, kubeconfig) {
		bed, err := testbed.Local(ctx, name, os.Stdout)
		if err != nil {
			return nil, err
		}
		return &stage{bed: bed, image: testbed.OperatorImage},
			bed.Install(ctx, testbed.OperatorImage, testbed.MySQLImage)
	}
	operator, mysql := os.Getenv("OPERATOR_IMAGE"), os.Getenv("MYSQL_IMAGE")
	if operator == "" || mysql == "" {
		return nil, fmt.Errorf("KUBECONFIG is set: name images that the nodes of that Kubernetes can pull in " +
			"OPERATOR_IMAGE (built with docker build --target demo) and MYSQL_IMAGE (for example mysql:9.7); " +
			"unset KUBECONFIG for a local Kubernetes")
	}
	bed, err := testbed.Existing(ctx, kubeconfig, os.Stdout)
	if err != nil {
		return nil, err
	}
	if err := admit(ctx, bed.Client, operator); err != nil {
		return nil, err
	}
	return &stage{bed: bed, image: operator}, bed.Install(ctx, operator, mysql)
}

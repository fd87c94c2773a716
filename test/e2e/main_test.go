//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"
	"testing"
	"time"

	"cnmsql.co/test/testbed"
)

// bed is the local Kubernetes that all tests share.
var bed *testbed.Bed

// keep leaves behind the local Kubernetes, and in it what a test that failed has made.
var keep = os.Getenv("E2E_KEEP") != ""

// endsEarly is how long before its limit of time a run is ended, so that nothing of it is left behind.
const endsEarly = time.Minute

func TestMain(m *testing.M) {
	flag.Parse()
	name := cmp.Or(os.Getenv("E2E_NAME"), "e2e")
	if err := testbed.Claim(name); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() { os.Exit(ended(name, 1, fmt.Sprint("ended by a signal: ", <-signals))) }()
	// What an interrupted run left behind would only be in the way.
	if !takeDown(name) {
		os.Exit(1)
	}
	var err error
	ctx := context.Background()
	if bed, err = testbed.Local(ctx, name, os.Stdout); err == nil {
		err = bed.Install(ctx, testbed.OperatorImage, testbed.MySQLImage)
	}
	if err != nil {
		os.Exit(ended(name, 1, fmt.Sprint("the test bed did not come up: ", err)))
	}
	if limit, ok := flag.Lookup("test.timeout").Value.(flag.Getter).Get().(time.Duration); ok && limit > endsEarly {
		time.AfterFunc(limit-endsEarly, func() {
			_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 2)
			os.Exit(ended(name, 1, fmt.Sprintf("ended %s before the limit of %s", endsEarly, limit)))
		})
	}
	os.Exit(ended(name, m.Run(), ""))
}

// ended takes the local Kubernetes down, says why, and tells the exit code. The end is what everybody reads.
func ended(name string, code int, why string) int {
	if !takeDown(name) {
		code = max(code, 1)
	}
	sayLeftOut()
	if why != "" {
		fmt.Fprintln(os.Stderr, "e2e:", why)
	}
	return code
}

// takeDown removes the local Kubernetes of that name, unless it is to be kept.
func takeDown(name string) bool {
	if keep {
		return true
	}
	err := testbed.Down(context.Background(), name, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e: the test bed was not removed:", err)
	}
	return err == nil
}

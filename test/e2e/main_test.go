//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"testing"

	"cnmsql.co/test/testbed"
)

// bed is the local Kubernetes that all tests share.
var bed *testbed.Bed

// keep leaves behind the local Kubernetes, and in it what a test that failed has made.
var keep = os.Getenv("E2E_KEEP") != ""

func TestMain(m *testing.M) {
	ctx := context.Background()
	name := cmp.Or(os.Getenv("E2E_NAME"), "e2e")
	if err := testbed.Claim(name); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	// What an interrupted run left behind would only be in the way.
	if !keep {
		if err := testbed.Down(ctx, name, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
			os.Exit(1)
		}
	}
	var err error
	if bed, err = testbed.Local(ctx, name, os.Stdout); err == nil {
		err = bed.Install(ctx, testbed.OperatorImage, testbed.MySQLImage)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e: the test bed did not come up:", err)
		os.Exit(1)
	}
	code := m.Run()
	if !keep {
		if err := testbed.Down(ctx, name, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "e2e: the test bed was not removed:", err)
			code = max(code, 1)
		}
	}
	sayLeftOut() // last: the end is what everybody reads
	os.Exit(code)
}

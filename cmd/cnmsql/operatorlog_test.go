package main

import (
	"bufio"
	"log"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"cnmsql.co/internal/logpipe"
)

// A container's output is a pipe. Nobody reads it: the operator goes on, whoever logs in it, and counts what it drops.
func TestTheOperatorDoesNotWaitForWhoReadsItsLog(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	logger, lines := operatorLog(write, slog.LevelInfo)
	began := time.Now()
	long := strings.Repeat("x", 1024)
	for range 2 * logpipe.Room / 1024 / 4 {
		logger.Info("of slog", "long", long)
		ctrl.Log.Info("of controller-runtime", "long", long)
		klog.InfoS("of client-go", "long", long)
		log.Print("of net/http ", long)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("to log what nobody reads took %s", took)
	}
	dropped := lines.Dropped()
	if dropped == 0 {
		t.Error("nothing was dropped")
	}

	go func() { _ = lines.Close(time.Minute); _ = write.Close() }()
	came, of := 0, map[string]int{}
	for s := bufio.NewScanner(read); s.Scan(); { // also the line that says that some are dropped
		for _, who := range []string{"slog", "controller-runtime", "client-go", "net/http"} {
			if strings.Contains(s.Text(), `"msg":"of `+who) {
				of[who]++
				came++
			}
		}
	}
	if len(of) != 4 || came+int(dropped) != 2*logpipe.Room/1024 {
		t.Errorf("%d lines came, of %v, and %d are said to be dropped", came, of, dropped)
	}
}

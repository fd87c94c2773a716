package logpipe

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func told(dropped int) []byte { return fmt.Appendf(nil, "%d dropped\n", dropped) }

// A pipe that nobody reads takes 64 KiB: who logs goes on, and is told afterwards what is lacking.
func TestWhoLogsDoesNotWaitForWhoReads(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = read.Close() }()
	w := New(write, told)
	line := append(bytes.Repeat([]byte("x"), 1023), '\n')
	const lines = 2 * Room / 1024
	began := time.Now()
	for range lines {
		if n, err := w.Write(line); n != len(line) || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("%d lines that nobody reads take %s", lines, took)
	}
	if err := w.Flush(10 * time.Millisecond); err == nil {
		t.Error("what nobody reads is said to be written")
	}

	came := make(chan [2]int)
	go func() {
		var lines, dropped int
		for s := bufio.NewScanner(read); s.Scan(); {
			var n int
			if _, err := fmt.Sscanf(s.Text(), "%d dropped", &n); err != nil {
				lines++
			}
			dropped += n
		}
		came <- [2]int{lines, dropped}
	}()
	if err := w.Flush(time.Minute); err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write([]byte("after\n"))
	if err := w.Close(time.Minute); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	if got := <-came; got[0]+got[1] != lines+1 || got[1] < lines/3 {
		t.Errorf("of %d lines %d came, and %d are said to be dropped", lines+1, got[0], got[1])
	}
}

func TestLinesComeInOrderAndAreFlushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out slow
		w := New(&out, told)
		for i := range 3 {
			_, _ = fmt.Fprintf(w, "line %d\n", i)
		}
		if err := w.Flush(2500 * time.Millisecond); err == nil || !strings.Contains(err.Error(), "7 bytes") {
			t.Errorf("after two of three seconds: %v", err)
		}
		_, _ = w.Write([]byte("the last\n"))
		if err := w.Close(2 * time.Second); err != nil {
			t.Error(err)
		}
		if got := out.String(); got != "line 0\nline 1\nline 2\nthe last\n" {
			t.Errorf("written: %q", got)
		}
	})
}

// slow takes a second for a line.
type slow struct{ bytes.Buffer }

func (s *slow) Write(line []byte) (int, error) {
	<-time.After(time.Second)
	return s.Buffer.Write(line)
}

// Command gotest runs go test and prints what go test prints. Beside that it notes, in the file that
// CNMSQL_TESTED names, which tests were played, for how long, and which were skipped, so that a run of
// several go tests can say at its end what none of them played, and where the time went: gotest -say. A
// package without -v says nothing of a test that is skipped. It knows what go test -json writes, and
// nothing of any test.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// envNotes names the file of notes; without it nothing is noted.
const envNotes = "CNMSQL_TESTED"

func main() {
	notes := os.Getenv(envNotes)
	if slices.Equal(os.Args[1:], []string{"-say"}) {
		text, err := os.ReadFile(notes)
		if err != nil {
			fmt.Fprintf(os.Stderr, "gotest: reading what was tested (%s names the file): %v\n", envNotes, err)
			os.Exit(1)
		}
		fmt.Println(say(string(text)))
		return
	}
	os.Exit(run(os.Args[1:], notes))
}

// run is go test with these arguments, and tells its exit code.
func run(args []string, notes string) int {
	cmd := exec.Command("go", withJSON(args)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	var noted []byte
	if err == nil {
		noted = relay(out, os.Stdout, slices.Contains(args, "-v"))
		err = cmd.Wait()
	}
	if notes != "" {
		err = errors.Join(err, appendTo(notes, noted))
	}
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return failed.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		return 1
	}
	return 0
}

// withJSON are the arguments of go for go test -json: -C comes before all other flags.
func withJSON(args []string) []string {
	at := 0
	if len(args) > 1 && args[0] == "-C" {
		at = 2
	}
	return slices.Concat([]string{"test"}, args[:at], []string{"-json"}, args[at:])
}

func appendTo(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// event is a line of go test -json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // seconds
}

// relay prints what go test would have printed, and returns a note a line: "skip", "pass", "fail" or
// "package", the test or the package, and the seconds it took. Without verbose, what a test prints is shown
// when it has failed.
func relay(from io.Reader, to io.Writer, verbose bool) (notes []byte) {
	held := map[string][]string{}
	in := bufio.NewReader(from)
	for {
		line, err := in.ReadBytes('\n')
		var e event
		switch {
		case len(line) > 0 && json.Unmarshal(line, &e) != nil:
			_, _ = to.Write(line)
		case e.Output != "" && e.Test != "" && !verbose:
			test, _, _ := strings.Cut(e.Test, "/")
			held[e.Package+" "+test] = append(held[e.Package+" "+test], e.Output)
		case e.Output != "" && (verbose || !isNoise(e.Output)):
			_, _ = io.WriteString(to, e.Output)
		case e.Test == "" && e.Action == "fail": // what is held is of tests that failed or never ended
			for _, key := range slices.Sorted(maps.Keys(held)) {
				if strings.HasPrefix(key, e.Package+" ") {
					_, _ = io.WriteString(to, strings.Join(held[key], ""))
				}
			}
		case e.Test != "" && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip"):
			if key := e.Package + " " + e.Test; e.Action != "fail" {
				delete(held, key)
			}
			notes = fmt.Appendf(notes, "%s %s.%s %.1f\n", e.Action, e.Package, e.Test, e.Elapsed)
		case e.Test == "" && e.Action == "pass":
			notes = fmt.Appendf(notes, "package %s %.1f\n", e.Package, e.Elapsed)
		}
		if err != nil {
			return notes
		}
	}
}

// isNoise reports whether an output is the PASS of a package: go test prints the last word of a
// package only when it fails or with -v.
func isNoise(output string) bool { return output == "PASS\n" }

// say tells in one line what was skipped and never played, and in two more where the time went.
func say(notes string) string {
	skipped, tests, packages := []string{}, map[string]float64{}, map[string]float64{}
	for line := range bytes.Lines([]byte(notes)) {
		var action, what string
		var seconds float64
		_, _ = fmt.Sscan(string(line), &action, &what, &seconds)
		what = strings.TrimPrefix(what, "cnmsql.co/")
		switch action {
		case "skip":
			skipped = append(skipped, what)
		case "package":
			packages[what] = max(packages[what], seconds)
		default:
			tests[what] = max(tests[what], seconds)
		}
	}
	slices.Sort(skipped)
	skipped = slices.DeleteFunc(slices.Compact(skipped), func(test string) bool {
		_, played := tests[test]
		return played
	})
	lines := []string{"skipped tests: none"}
	if len(skipped) > 0 {
		lines[0] = fmt.Sprintf("skipped tests: %d: %s", len(skipped), strings.Join(skipped, " "))
	}
	return strings.Join(append(lines, "longest packages: "+longest(packages), "longest tests: "+longest(tests)), "\n")
}

// shown is how many of the longest are told.
const shown = 20

// longest lists what took longest, in seconds.
func longest(took map[string]float64) string {
	of := slices.DeleteFunc(slices.Collect(maps.Keys(took)), func(what string) bool { return took[what] < 1 })
	slices.SortFunc(of, func(a, b string) int { return cmp.Or(cmp.Compare(took[b], took[a]), cmp.Compare(a, b)) })
	for i, what := range of {
		of[i] = fmt.Sprintf("%s %.0f s", what, took[what])
	}
	return cmp.Or(strings.Join(of[:min(len(of), shown)], ", "), "none took a second")
}

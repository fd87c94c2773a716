// Command echo is what the smoke test runs in Pods: it notes every start in its
// volume, tells over HTTP who it is and how often it started, and fetches a URL
// for the test with `echo get URL`.
package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "get" {
		get(os.Args[2])
		return
	}
	f, err := os.OpenFile("/data/starts", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		fail(err)
	}
	fmt.Fprintln(f, time.Now())
	host, _ := os.Hostname()
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		starts, _ := os.ReadFile("/data/starts")
		fmt.Fprintf(w, "%s started %d times\n", host, bytes.Count(starts, []byte("\n")))
	})
	fail(http.ListenAndServe(":8080", nil))
}

func get(url string) {
	client := http.Client{Timeout: 2 * time.Second}
	resp, err := client.Get(url)
	if err != nil {
		fail(err)
	}
	io.Copy(os.Stdout, resp.Body)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

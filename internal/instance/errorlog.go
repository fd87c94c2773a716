package instance

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// errorLog forwards mysqld's error log as our own lines and remembers the last
// errors, which tell why it did not start.
type errorLog struct {
	log *slog.Logger
	// groupNews is called when the group says something.
	groupNews func()
	// limit is how much is forwarded. mysqld without its files (a volume that vanished)
	// writes as fast as it can and never ends: the node's disk and its other Pods are
	// not to pay for that.
	limit   *rate.Limiter
	leftOut int
	toldAt  time.Time // how much was left out was told last

	mu     sync.Mutex
	errors []lastError
	fullAt time.Time // it said then that the volume is full
}

type lastError struct {
	at   time.Time
	text string
}

// lastWords is how long before its end mysqld may have told the reason of it.
const lastWords = 10 * time.Second

// fullWords is how long the volume counts as full after mysqld has said so. While it waits for space it
// says so every ten minutes. What it said before that has nothing to do with an end: somebody may have
// made room since.
const fullWords = 15 * time.Minute

// Lines of mysqld's error log that are forwarded: what a start, or a bad minute, writes
// is far less.
const (
	linesPerSecond = 100
	linesAtOnce    = 2000
	// leftOutTold is how often it is told at most how much was left out: else each line that is
	// forwarded would be two.
	leftOutTold = time.Second
)

func newErrorLog(log *slog.Logger, groupNews func()) *errorLog {
	return &errorLog{log: log, groupNews: groupNews, limit: rate.NewLimiter(linesPerSecond, linesAtOnce)}
}

var errorLine = regexp.MustCompile(`^(\d{4}-\d\d-\d\dT\S+) \d+ \[(\w+)\] \[(MY-\d+)\] \[\w+\] (.*)$`)

func (e *errorLog) read(r io.Reader) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		e.line(lines.Text())
	}
	e.tellLeftOut()
	_, _ = io.Copy(io.Discard, r) // a line beyond all measure must not block mysqld
}

func (e *errorLog) line(text string) {
	m := errorLine.FindStringSubmatch(text)
	e.noteSpace(text)
	if m == nil {
		if strings.TrimSpace(text) != "" {
			e.forward(slog.NewRecord(time.Now(), slog.LevelInfo, text, 0))
		}
		return
	}
	level := map[string]slog.Level{"ERROR": slog.LevelError, "Warning": slog.LevelWarn}[m[2]]
	if ts, err := time.Parse(time.RFC3339Nano, m[1]); err == nil {
		r := slog.NewRecord(ts, level, m[4], 0)
		r.Add("code", m[3])
		e.forward(r)
	}
	if e.groupNews != nil && strings.HasPrefix(m[4], "Plugin group_replication reported") {
		e.groupNews()
	}
	if m[2] == "ERROR" {
		e.note(m[4])
	}
}

// forward logs a line as ours, as long as they are not too many.
func (e *errorLog) forward(r slog.Record) {
	if !e.limit.Allow() {
		e.leftOut++
		return
	}
	if time.Since(e.toldAt) >= leftOutTold {
		e.tellLeftOut()
	}
	r.Add("source", "mysqld")
	if h := e.log.Handler(); h.Enabled(context.Background(), r.Level) {
		_ = h.Handle(context.Background(), r)
	}
}

func (e *errorLog) tellLeftOut() {
	if e.leftOut > 0 {
		e.log.Warn("mysqld writes its error log faster than the manager forwards it; lines were left out",
			"leftOut", e.leftOut,
			"linesPerSecond", linesPerSecond)
		e.leftOut, e.toldAt = 0, time.Now()
	}
}

func (e *errorLog) note(message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.errors = slices.DeleteFunc(e.errors, func(l lastError) bool { return l.text == message })
	e.errors = append(e.errors, lastError{time.Now(), message})
	if len(e.errors) > 8 {
		e.errors = e.errors[1:]
	}
}

func (e *errorLog) noteSpace(text string) {
	if strings.Contains(text, "No space left") || strings.Contains(text, "errno 28") ||
		strings.Contains(text, "error number 28") {
		e.mu.Lock()
		e.fullAt = time.Now()
		e.mu.Unlock()
	}
}

// last are the errors of the last few seconds, and whether the disk was full. What was
// told earlier has nothing to do with an end.
func (e *errorLog) last() (text string, full bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var texts []string
	for _, l := range e.errors {
		if time.Since(l.at) <= lastWords {
			texts = append(texts, l.text)
		}
	}
	return strings.Join(texts, "; "), time.Since(e.fullAt) <= fullWords
}

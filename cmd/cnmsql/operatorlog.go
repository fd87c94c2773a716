package main

import (
	"bytes"
	"io"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"cnmsql.co/internal/logpipe"
)

// logPatience is how long a process that ends waits until its log was read.
const logPatience = 200 * time.Millisecond

// operatorLog has the whole process, its libraries included, log as JSON to an output for which
// nobody waits.
func operatorLog(to io.Writer, level slog.Level) (*slog.Logger, *logpipe.Writer) {
	onto := func(w io.Writer) *slog.Logger {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
	}
	lines := logpipe.New(to, func(dropped int) []byte {
		var line bytes.Buffer
		onto(&line).Error("nobody read the output of the container for a time; lines of the log were dropped",
			"lines", dropped)
		return line.Bytes()
	})
	log := onto(lines)
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	klog.SetSlogLogger(log) // of client-go
	slog.SetLogLoggerLevel(slog.LevelWarn)
	slog.SetDefault(log) // and of what logs by package log, as servers of net/http do
	return log, lines
}

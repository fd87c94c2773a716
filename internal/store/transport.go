package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// transport carries requests, and breaks off those on which a store is silent. Time in
// which this side does not ask for anything does not count: a body that is written slowly,
// or an answer that is read slowly, is no silence of the store.
type transport struct {
	config  Config
	dir     string
	silence time.Duration

	mu      sync.Mutex
	trusted string // FileCA, when inner was made
	inner   *http.Transport
}

// RoundTrip is http.RoundTripper's. The error of a silent store is Stalled.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	inner, err := t.current()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	stalled := func() { cancel(Stalled) }
	sent := newWatch(t.silence, stalled)
	sent.allowed = func() { progress(ctx, 1) }
	req = req.WithContext(ctx)
	if req.Body != nil {
		req.Body = &requestBody{ReadCloser: req.Body, watch: sent}
	}
	res, err := inner.RoundTrip(req)
	sent.end()
	if err == nil && endless(req, res) {
		_ = res.Body.Close()
		err = refuse(Unsupported, "the answer does not tell its length, so it may be a part of the object")
	}
	if err != nil {
		cancel(nil)
		return nil, causeOf(ctx, err)
	}
	received := newWatch(t.silence, stalled)
	received.pause()
	res.Body = &responseBody{ReadCloser: res.Body, ctx: ctx, cancel: cancel, watch: received}
	return res, nil
}

// endless answers end with the connection, whether all was sent or not.
func endless(req *http.Request, res *http.Response) bool {
	return req.Method == http.MethodGet && res.StatusCode == http.StatusOK && res.ContentLength < 0 &&
		len(res.TransferEncoding) == 0
}

// causeOf gives Stalled in place of the error that it led to.
func causeOf(ctx context.Context, err error) error {
	if context.Cause(ctx) == error(Stalled) {
		return Stalled
	}
	return err
}

// current gives the connections, new ones when the authorities changed.
func (t *transport) current() (*http.Transport, error) {
	text, err := readSecret(t.dir, FileCA)
	if err != nil {
		return nil, because(Misconfigured, fmt.Errorf("reading the store's authorities: %w", err))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inner != nil && t.trusted == text {
		return t.inner, nil
	}
	var roots *x509.CertPool // nil is the system's
	if text != "" {
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM([]byte(text)) {
			return nil, refuse(Misconfigured, "%s holds no certificate", FileCA)
		}
	}
	if t.inner != nil {
		t.inner.CloseIdleConnections()
	}
	t.inner, t.trusted = connections(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots,
		InsecureSkipVerify: t.config.InsecureSkipVerify}), text
	return t.inner, nil
}

// connections finds a dead peer before a store counts as silent, and keeps no connection
// for so long that something between may have forgotten it.
func connections(config *tls.Config) *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, Control: keepsLittle,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 3}}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     15 * time.Second,
		DisableCompression:  true, // objects are what they are
		WriteBufferSize:     64 << 10,
		ReadBufferSize:      64 << 10,
	}
}

// watch breaks a request off when nothing was heard for too long.
type watch struct {
	silence time.Duration
	stalled func()
	// allowed is called after each silence that is allowed beyond the first; nil does nothing.
	allowed func()

	mu     sync.Mutex
	timer  *time.Timer
	counts bool
	ended  bool
	// more is how much longer than this silence the next may last.
	more time.Duration
}

func newWatch(silence time.Duration, stalled func()) *watch {
	w := &watch{silence: silence, stalled: stalled, counts: true}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(silence, w.over)
	return w
}

// over ends a silence.
func (w *watch) over() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch next := min(w.more, w.silence); {
	case !w.counts: // it was heard in this moment
	case next > 0:
		w.more -= next
		w.timer.Reset(next)
		if w.allowed != nil {
			w.allowed()
		}
	default:
		w.stalled()
	}
}

func (w *watch) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts = false
	w.timer.Stop()
}

// resume counts again, until nothing was heard for this long, or for the usual if that is longer.
func (w *watch) resume(long time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.counts, w.more = true, max(long-w.silence, 0)
		w.timer.Reset(w.silence)
	}
}

// end comes before the last resume of a body that is still read.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended, w.counts = true, false
	w.timer.Stop()
}

const (
	// afterBody is how many times as long as the line took for a body a store may take after it:
	// three quarters of the body may be held on the way then.
	afterBody = 3
	// mostSilences is how many times the usual silence a store may take after a body at most.
	mostSilences = 10
)

// requestBody is waited for without counting: that the connection reads it is a sign of
// life. After its end nothing moves that can be seen, and what waits in the kernel, a proxy or a modem
// is taken no faster than the body was: a store has several times as long for that.
type requestBody struct {
	io.ReadCloser
	watch *watch
	// taken is how long the connection took what it read, and since is when it read last.
	taken time.Duration
	since time.Time
}

// Read stops the watch while the body is read, and starts it for as long as the store may then be
// silent.
func (b *requestBody) Read(p []byte) (int, error) {
	b.watch.pause()
	if !b.since.IsZero() {
		b.taken += time.Since(b.since)
	}
	n, err := b.ReadCloser.Read(p)
	long := b.watch.silence
	if err != nil {
		long = min(afterBody*b.taken, mostSilences*b.watch.silence)
	}
	b.since = time.Now()
	b.watch.resume(long)
	return n, err
}

type responseBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	watch  *watch
}

// Read lets the watch run while an answer is awaited. An error tells what ended the request.
func (b *responseBody) Read(p []byte) (int, error) {
	b.watch.resume(b.watch.silence)
	n, err := b.ReadCloser.Read(p)
	b.watch.pause()
	progress(b.ctx, n)
	if err != nil && err != io.EOF {
		err = causeOf(b.ctx, err)
	}
	return n, err
}

// Close ends the watch and the request.
func (b *responseBody) Close() error {
	b.watch.end()
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}

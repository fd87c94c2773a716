package control

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"cnmsql.co/internal/core"
)

// Client speaks to one instance over one pooled HTTP/2 connection.
type Client struct {
	base string
	http *http.Client
	tr   *http.Transport
	// sends is for what is large: for as long as a peer takes none of it, its kernel
	// acknowledges none either.
	sends *http.Client
	// silence is how long a status stream may bring nothing.
	silence time.Duration
}

// silenceLimit is how long a status stream may bring nothing, though its connection stands.
// A manager says something each second; one that does not hangs, and what it said last must
// not be believed for ever. A busy machine has it be late, but not by that much.
const silenceLimit = 5 * time.Second

// NewClient makes a client for https://address. A peer that is silent is asked whether it is
// there, and given up: core.CutAfter its last word if its kernel acknowledges nothing either,
// core.MuteAfter it otherwise.
func NewClient(address string, conf *tls.Config) *Client {
	tr := transport(dial(conf, bound))
	sends := transport(dial(conf, func(net.Conn) error { return nil }))
	sends.DisableKeepAlives = true
	return &Client{base: "https://" + address, http: &http.Client{Transport: tr}, tr: tr,
		sends: &http.Client{Transport: sends}, silence: silenceLimit}
}

func transport(dial dialer) *http.Transport {
	return &http.Transport{
		DialTLSContext:    dial,
		ForceAttemptHTTP2: true,
		IdleConnTimeout:   time.Minute,
		MaxConnsPerHost:   2,
		// Answers have no headers to speak of.
		MaxResponseHeaderBytes: 64 << 10,
		HTTP2: &http.HTTP2Config{
			// Streams and vouches are heard each second: while they are, nobody has to ask.
			SendPingTimeout: core.AskAfter,
			PingTimeout:     core.MuteAfter - core.AskAfter,
		},
	}
}

// Close ends the connections that nobody uses now.
func (c *Client) Close() { c.tr.CloseIdleConnections() }

// Status asks for a snapshot now. The error is a *Refusal when the manager said no, and any other
// when it is not known what the instance does.
func (c *Client) Status(ctx context.Context) (Snapshot, error) {
	return c.exchange(ctx, http.MethodGet, PathStatus, nil)
}

// Order sends an order and returns the snapshot after it. The error is a
// *Refusal when the manager said no.
func (c *Client) Order(ctx context.Context, o Order) (Snapshot, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return Snapshot{}, err
	}
	return c.exchange(ctx, http.MethodPost, PathOrder+url.PathEscape(string(o.Verb())), body)
}

// Vouch asks whether the instance still counts on this primary in an epoch; nil when it does, a
// *Refusal when it does not, and any other error when that is not known.
func (c *Client) Vouch(ctx context.Context, primary string, epoch int64) error {
	q := url.Values{"instance": {primary}, "epoch": {strconv.FormatInt(epoch, 10)}}
	return c.ask(ctx, c.http, http.MethodGet, PathVouch+"?"+q.Encode(), nil)
}

// ReplaceManager sends a binary that is to go on in the manager's place; nil when it is
// about to, a *Refusal when it is not.
func (c *Client) ReplaceManager(ctx context.Context, digest string, binary io.Reader) error {
	return c.ask(ctx, c.sends, http.MethodPost, PathManager+"?"+url.Values{"digest": {digest}}.Encode(), binary)
}

// ask wants to hear no more than that it is so.
func (c *Client) ask(ctx context.Context, by *http.Client, method, path string, body io.Reader) error {
	resp, err := c.do(ctx, by, method, path, body)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, maxMessage))
	return errors.Join(err, resp.Body.Close())
}

// Watch calls each with every snapshot of a stream until it ends; it always
// returns an error: why it ended. It ends a stream that brings nothing for five seconds.
func (c *Client) Watch(ctx context.Context, each func(Snapshot)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(c.silence, func() {
		cancel(fmt.Errorf("the manager has said nothing for %s, though its connection stands", c.silence))
	})
	defer silent.Stop()
	err := c.watch(ctx, func(s Snapshot) {
		silent.Stop() // however long each takes, the manager has spoken
		each(s)
		silent.Reset(c.silence)
	})
	if why := context.Cause(ctx); why != nil && !errors.Is(why, context.Canceled) {
		return fmt.Errorf("status stream of %s ended: %w", c.base, why)
	}
	return err
}

func (c *Client) watch(ctx context.Context, each func(Snapshot)) error {
	resp, err := c.do(ctx, c.http, http.MethodGet, PathStatus+"?watch=true&brief=true", nil)
	if err != nil {
		return c.explained(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	said := listener{from: newMessages(resp.Body)}
	for {
		s, err := said.next()
		if err != nil {
			return fmt.Errorf("status stream of %s ended: %w", c.base, err)
		}
		each(s)
	}
}

// explained is the error of a request that had no answer, with the reason if it is that the peer refuses
// this end's certificate. By TLS 1.3 a peer says so after the handshake, and HTTP/2 says no more of that
// than that there is no connection. So that it says it again, another one is made, and nothing is asked.
func (c *Client) explained(ctx context.Context, err error) error {
	var noAnswer *url.Error
	var network *net.OpError
	if !errors.As(err, &noAnswer) || noAnswer.Timeout() || ctx.Err() != nil ||
		errors.As(err, &network) && (network.Op == "dial" || network.Op == "remote error") {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, dialLimit+handshakeLimit)
	defer cancel()
	conn, failed := c.tr.DialTLSContext(ctx, "tcp", strings.TrimPrefix(c.base, "https://"))
	if failed != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if failed = conn.SetReadDeadline(time.Now().Add(dialLimit)); failed == nil {
		_, failed = conn.Read(make([]byte, 1))
	}
	if errors.As(failed, &network) && network.Op == "remote error" {
		return fmt.Errorf("%w: %w", err, failed)
	}
	return err
}

func (c *Client) exchange(ctx context.Context, method, path string, body []byte) (Snapshot, error) {
	var s Snapshot
	resp, err := c.do(ctx, c.http, method, path, bytes.NewReader(body))
	if err != nil {
		return s, err
	}
	defer func() { _ = resp.Body.Close() }()
	if s, err = newMessages(resp.Body).next(); err != nil {
		return s, fmt.Errorf("%s %s%s: reading the answer: %w", method, c.base, path, err)
	}
	return s, nil
}

// do sends a request and turns every answer but 200 into an error.
func (c *Client) do(ctx context.Context, by *http.Client, method, path string, body io.Reader,
) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	resp, err := by.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var no Refusal
	if json.Unmarshal(text, &no) == nil && no.Reason != "" {
		eachText(reflect.ValueOf(&no), shown)
		return nil, &no
	}
	return nil, fmt.Errorf("%s %s%s: %d %s: %s", method, c.base, path, resp.StatusCode,
		http.StatusText(resp.StatusCode),
		shown(string(bytes.TrimSpace(text))))
}

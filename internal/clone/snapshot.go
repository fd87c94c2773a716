package clone

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"
)

// Donor is a server to clone from, and how to talk to it.
type Donor struct {
	// Address is host:port.
	Address string
	// User has BACKUP_ADMIN and caching_sha2_password.
	User, Password string
	// TLS is required. Its ServerName is the address's host if it is empty.
	TLS *tls.Config
	// Silence is how long the donor may say nothing; it has to be more than the 5 s
	// between its signs of life. 0 is one minute.
	Silence time.Duration
	// Patience is how long the consumer may keep the donor waiting in one call before
	// the donor gives up. 0 is ten minutes.
	Patience time.Duration
}

// Snapshot takes a snapshot of a donor and gives it to a consumer. It uses two
// connections and no goroutine that outlives it. It ends when ctx does or the consumer
// refuses, within the second that it may take to tell the donor. DDL on the donor goes on
// meanwhile.
//
// When it returns nil all of the snapshot was given to the consumer, and accepted state
// by state. Its point in time is the donor's when PageCopy was accepted.
func Snapshot(ctx context.Context, d Donor, to Consumer) error {
	d.Silence, d.Patience = cmp.Or(d.Silence, time.Minute), cmp.Or(d.Patience, 10*time.Minute)
	main, release, err := d.connect(ctx)
	if err != nil {
		return err
	}
	defer release()
	aux, release, err := d.connect(ctx)
	if err != nil {
		return err
	}
	defer release()
	s := session{main: main, aux: aux, to: to, at: newSequence()}
	if err := s.begin(d.Patience); err != nil {
		return fmt.Errorf("beginning to clone from %s: %w", d.Address, ended(ctx, err))
	}
	if err := s.run(ctx); err != nil {
		err = ended(ctx, err)
		s.giveUp(err)
		return fmt.Errorf("cloning from %s, in state %s: %w", d.Address, s.at.state, err)
	}
	return nil
}

// session is one snapshot. The donor sends over main; over aux its states are
// acknowledged, for main is busy until the end.
type session struct {
	main, aux *conn
	to        Consumer
	at        *sequence
	locator   Locator
	// opened: the donor has a snapshot for us.
	opened bool
}

// begin goes over to the clone protocol, on two connections to the same server.
func (s *session) begin(patience time.Duration) error {
	seconds := max(1, int64(patience/time.Second))
	// A connection for acknowledgements is idle for as long as a state takes.
	const week = 7 * 24 * 3600
	settings := fmt.Sprintf("SET SESSION net_write_timeout=%d, net_read_timeout=%d, wait_timeout=%d",
		seconds, seconds, week)
	var servers [2]string
	for i, c := range []*conn{s.main, s.aux} {
		if err := c.ask(comQuery, settings); err != nil {
			return err
		}
		var err error
		if servers[i], err = c.query(whichServer); err != nil {
			return fmt.Errorf("asking which server it is: %w", err)
		}
	}
	if servers[0] != servers[1] {
		return refuse(TwoServers, "one connection reaches the server %q, and the other one %q", servers[0], servers[1])
	}
	for _, c := range []*conn{s.main, s.aux} {
		if err := c.ask(comClone, ""); err != nil {
			return err
		}
	}
	return nil
}

// whichServer asks a server for what tells it from another. The UUID does so, unless both run on copies of
// the same files. Nobody needs a privilege to ask.
const whichServer = "SELECT CONCAT_WS(' ', @@server_uuid, @@hostname, @@port)"

func (s *session) run(ctx context.Context) error {
	from, err := s.open()
	if err != nil {
		return err
	}
	s.opened = true
	if err := from.check(); err != nil {
		return err
	}
	if err := s.to.Begin(ctx, from); err != nil {
		return err
	}
	if err := s.main.command([]byte{commandExecute}); err != nil {
		return err
	}
	for {
		r, more, err := s.receive()
		if err != nil {
			return err
		}
		if !more {
			break
		}
		if err := s.process(ctx, r); err != nil {
			return err
		}
	}
	if err := s.at.finished(); err != nil {
		return err
	}
	return s.exit()
}

// open begins a snapshot and learns whose it is.
func (s *session) open() (Origin, error) {
	from := Origin{Config: map[string]string{}}
	if err := s.main.command(initMessage()); err != nil {
		return from, err
	}
	for told := 0; ; {
		code, body, err := s.main.response()
		if err != nil || code == responseComplete {
			return from, err
		}
		if code == responseLocator {
			from.Protocol, s.locator, err = parseLocators(body)
		} else {
			err = from.learn(code, body)
		}
		if told += len(body) + 1; err == nil && told > maxOrigin {
			err = refuse(Malformed, "the donor tells more than %d bytes about itself", maxOrigin)
		}
		if err != nil {
			return from, err
		}
	}
}

// receive returns the next record; more is false at the end.
func (s *session) receive() (r Record, more bool, err error) {
	code, body, err := s.main.response()
	if err != nil || code == responseComplete {
		return r, false, err
	}
	if code != responseDescriptor {
		return r, false, refuse(UnknownVersion, "response %d where a descriptor is due", code)
	}
	if r.Descriptor, err = parseDescriptorMessage(body); err != nil {
		return r, false, err
	}
	if !r.IsData() {
		return r, true, nil
	}
	code, body, err = s.main.response()
	if err == nil && code != responseData {
		err = refuse(Malformed, "response %d where data are due", code)
	}
	r.Data = body
	return r, true, err
}

// process gives a record to the consumer, and tells the donor that a state is accepted.
func (s *session) process(ctx context.Context, r Record) error {
	change, ok := r.Descriptor.(StateChange)
	if ok && change.KeepAlive() {
		return nil
	}
	if err := s.at.next(r); err != nil {
		return err
	}
	if err := hand(ctx, s.to, r); err != nil || !ok || change.Start() {
		return err
	}
	if err := s.aux.exchange(ackMessage(s.locator, change, 0)); err != nil {
		return fmt.Errorf("acknowledging %s: %w", change.State, err)
	}
	return nil
}

// farewell is how long it may take to tell the donor that a snapshot is given up.
const farewell = time.Second

// giveUp tells the donor that nobody will come back for this snapshot. It would keep it
// otherwise, and refuse the next clone until it has noticed that the connection is lost.
// That may have befallen one connection only. A donor that cannot be told notices so itself.
func (s *session) giveUp(why error) {
	var said *DonorError
	if !s.opened || errors.As(why, &said) {
		return // it knows
	}
	s.aux.revive(farewell)
	_ = s.aux.exchange(ackMessage(s.locator, StateChange{State: s.at.state}, errInterrupted))
}

// exit ends the clone protocol on both connections, and then these.
func (s *session) exit() error {
	for _, c := range []*conn{s.aux, s.main} {
		if err := c.exchange([]byte{commandExit}); err != nil {
			return fmt.Errorf("taking leave: %w", err)
		}
		if err := c.command([]byte{comQuit}); err != nil {
			return fmt.Errorf("taking leave: %w", err)
		}
	}
	return nil
}

// response reads one message of the donor: every one begins with frame 0.
func (c *conn) response() (code byte, body []byte, err error) {
	c.seq = 0
	p, err := c.read()
	if err != nil {
		return 0, nil, err
	}
	if len(p) == 0 {
		return 0, nil, refuse(Malformed, "an empty message")
	}
	if p[0] == responseError {
		return 0, nil, parseFailure(p[1:])
	}
	if p[0] == responseComplete && len(p) > 1 {
		return 0, nil, refuse(Malformed, "a completion of %d bytes", len(p))
	}
	return p[0], p[1:], nil
}

// exchange sends a message to which nothing but its completion is due.
func (c *conn) exchange(message []byte) error {
	if err := c.command(message); err != nil {
		return err
	}
	code, _, err := c.response()
	if err == nil && code != responseComplete {
		err = refuse(UnknownVersion, "response %d where a completion is due", code)
	}
	return err
}

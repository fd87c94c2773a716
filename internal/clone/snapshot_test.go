package clone

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// script is what a donor of its own kind sends as answer to EXECUTE.
type script func(main *conn) error

// fakeDonor is a server that one is logged in to, over pipes.
type fakeDonor struct {
	main, aux *conn
	from      Origin
	play      script
	// behind is the server that the second connection reaches; "" is the same one.
	behind string
	// begun are the connections that went over to the clone protocol.
	begun atomic.Int32
	// acked are the states that were acknowledged.
	acked []State
	// givenUp are the errors that came instead.
	givenUp []uint32
	left    atomic.Int32 // connections that were ended in order
}

func text(parts ...string) (b []byte) {
	for _, p := range parts {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(p))), p...)
	}
	return b
}

// say sends one message.
func say(c *conn, code byte, body []byte) error { return c.command(append([]byte{code}, body...)) }

// tell sends one record.
func tell(c *conn, r Record) error {
	err := say(c, responseDescriptor, r.Descriptor.Append([]byte{engineInnoDB, 0}))
	if err == nil && r.IsData() {
		err = say(c, responseData, r.Data)
	}
	return err
}

// whole sends records, and the completion.
func whole(records ...Record) script {
	return func(c *conn) error {
		for _, r := range records {
			if err := tell(c, r); err != nil {
				return err
			}
		}
		return say(c, responseComplete, nil)
	}
}

// introduce answers INIT.
func (f *fakeDonor) introduce() error {
	_ = say(f.main, responsePluginV2, text("clone", "mysql_clone.so"))
	_ = say(f.main, responseCollation, text("utf8mb4_0900_ai_ci"))
	for key, value := range f.from.Config {
		_ = say(f.main, responseConfig, text(key, value))
	}
	_ = say(f.main, responseLocator, appendLocator(binary.LittleEndian.AppendUint32(nil, f.from.Protocol),
		Locator{CloneID: 1, SnapshotID: 2}))
	return say(f.main, responseComplete, nil)
}

// serve answers on one connection until it is closed.
func (f *fakeDonor) serve(c *conn) {
	for {
		c.seq = 0
		p, err := c.read()
		if err != nil {
			return
		}
		switch p[0] {
		case comQuery: // no other command of either protocol has this number here
			err = f.answer(c, string(p[1:]))
		case comClone:
			f.begun.Add(1)
			err = c.write([]byte{replyOK, 0, 0, 2, 0, 0, 0})
		case commandInit:
			err = f.introduce()
		case commandExecute:
			err = f.play(c)
		case commandAck:
			d, parseErr := ParseDescriptor(p[1+4+1+4+locatorSize+4:])
			change, ok := d.(StateChange)
			if parseErr != nil || !ok || !change.KeepAlive() {
				return
			}
			if number := binary.LittleEndian.Uint32(p[1:]); number != 0 {
				f.givenUp = append(f.givenUp, number)
			} else {
				f.acked = append(f.acked, change.State)
			}
			err = say(c, responseComplete, nil)
		case commandExit:
			f.leave(c)
			return
		}
		if err != nil {
			return
		}
	}
}

// answer answers a statement as a server does that was not asked for the clone protocol yet.
func (f *fakeDonor) answer(c *conn, statement string) error {
	if statement != whichServer {
		return c.write([]byte{replyOK, 0, 0, 2, 0, 0, 0})
	}
	server := "3e11fa47-71ca-11e1-9e33-c80aa9429562 db-1 3306"
	if c == f.aux {
		server = cmp.Or(f.behind, server)
	}
	return result(c, row(server))
}

// row is a row of one column.
func row(value string) []byte {
	if len(value) < nullColumn {
		return append([]byte{byte(len(value))}, value...)
	}
	return append(binary.LittleEndian.AppendUint16([]byte{0xfc}, uint16(len(value))), value...)
}

// result sends a result of one column, whose rows are sent as they are given.
func result(c *conn, rows ...[]byte) error {
	end := []byte{replySwitch, 0, 0, 2, 0}
	packets := append(append([][]byte{{1}, []byte("\x03def, and more of the column")}, end), append(rows, end)...)
	for _, p := range packets {
		if err := c.write(p); err != nil {
			return err
		}
	}
	return nil
}

// leave ends the clone protocol. What comes then is an ordinary command: to quit.
func (f *fakeDonor) leave(c *conn) {
	if say(c, responseComplete, nil) != nil {
		return
	}
	c.seq = 0
	if p, err := c.read(); err == nil && bytes.Equal(p, []byte{comQuit}) {
		f.left.Add(1)
	}
}

// against runs a session against a fake donor, and waits until both have ended.
func (f *fakeDonor) against(ctx context.Context, t *testing.T, to Consumer, silence time.Duration) error {
	t.Helper()
	if f.from.Config == nil {
		f.from = origin()
	}
	var mains, auxes net.Conn
	ours, theirs := net.Pipe()
	mains = ours
	f.main = newConn(theirs, 5*time.Second)
	ours, theirs = net.Pipe()
	auxes = ours
	f.aux = newConn(theirs, 5*time.Second)
	done := make(chan struct{}, 2)
	for _, c := range []*conn{f.main, f.aux} {
		go func() { f.serve(c); _ = c.Close(); done <- struct{}{} }()
	}
	s := session{main: newConn(mains, silence), aux: newConn(auxes, silence), to: to, at: newSequence()}
	defer context.AfterFunc(ctx, func() { s.main.interrupt(); s.aux.interrupt() })()
	err := s.begin(time.Minute)
	if err == nil {
		err = s.run(ctx)
	}
	err = ended(ctx, err)
	if err != nil {
		s.giveUp(err)
	}
	_, _ = mains.Close(), auxes.Close()
	<-done
	<-done
	return err
}

func TestASessionGivesAllRecordsAndAcknowledgesEachState(t *testing.T) {
	alive := Record{Descriptor: StateChange{State: StateFileCopy, Flags: stateStart | stateAck}}
	donor := fakeDonor{play: whole(slices.Insert(scene(), 8, alive)...)}
	var got list
	must(t, donor.against(t.Context(), t, &got, 5*time.Second))
	if !bytes.Equal(written(t, got.records).Bytes(), written(t, scene()).Bytes()) {
		t.Errorf("other records arrive than were sent: %d", len(got.records))
	}
	states := []State{StateInit, StateFileCopy, StatePageCopy, StateRedoCopy}
	if !slices.Equal(donor.acked, states) || donor.left.Load() != 2 {
		t.Errorf("acknowledged %v, and left %d connections", donor.acked, donor.left.Load())
	}
	if got.from.Version() != "9.7.4-2" || len(got.from.Plugins) != 1 || len(got.from.Collations) != 1 {
		t.Errorf("the donor is %+v", got.from)
	}
}

// What was not accepted must not be acknowledged: the donor would forget it.
func TestAStateThatIsNotAcceptedIsNotAcknowledged(t *testing.T) {
	donor := fakeDonor{play: whole(scene()...)}
	full := errors.New("the store is full")
	err := donor.against(t.Context(), t, &hooks{Consumer: new(list), accept: func(s State) error {
		if s == StatePageCopy {
			return full
		}
		return nil
	}}, 5*time.Second)
	if !errors.Is(err, full) || !slices.Equal(donor.acked, []State{StateInit, StateFileCopy}) {
		t.Errorf("%v, acknowledged %v", err, donor.acked)
	}
	if !slices.Equal(donor.givenUp, []uint32{errInterrupted}) {
		t.Errorf("the donor was told %v", donor.givenUp)
	}
}

func TestASessionEndsWithATypedError(t *testing.T) {
	records := scene()
	failing := func(number uint32) script {
		return func(c *conn) error {
			return say(c, responseError, append(binary.LittleEndian.AppendUint32(nil, number), "no"...))
		}
	}
	for name, c := range map[string]struct {
		play script
		why  error
	}{
		"a donor that serves another":  {failing(3634), CloneRunning},
		"a donor that is stopped":      {failing(1317), DonorStops},
		"an account without privilege": {failing(1227), NoPrivilege},
		"a server without the plugin":  {failing(1524), NoPlugin},
		"a server without redo log":    {failing(3983), RedoLogDisabled},
		"a lock that is not had":       {failing(1205), DDLRunning},
		"encryption in the clear":      {failing(3872), NeedsTLS},
		"an end too early":             {whole(records[:12]...), Incomplete},
		"a connection that breaks":     {func(c *conn) error { return io.ErrClosedPipe }, ConnectionLost},
		"a donor that is silent":       {func(c *conn) error { _, err := c.read(); return err }, DonorSilent},
		"an unknown response":          {func(c *conn) error { return say(c, 42, nil) }, UnknownVersion},
		"data without a descriptor":    {func(c *conn) error { return say(c, responseData, nil) }, UnknownVersion},
		"an empty message":             {func(c *conn) error { return c.command(nil) }, Malformed},
		"a descriptor of another engine": {func(c *conn) error {
			return say(c, responseDescriptor, []byte{11, 0})
		}, Malformed},
		"a descriptor without data": {func(c *conn) error {
			_ = whole(records[:6]...)(c)
			return nil
		}, Incomplete},
	} {
		synctest.Test(t, func(t *testing.T) { // one that is slow on a busy machine is not silent
			donor := fakeDonor{play: c.play}
			if err := donor.against(t.Context(), t, new(list), time.Second); !errors.Is(err, c.why) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// The donor would wait for us to come back.
func TestADonorIsToldWhenOneConnectionFailed(t *testing.T) {
	for name, play := range map[string]script{
		"broken": func(*conn) error { return io.ErrClosedPipe },
		"silent": func(c *conn) error { _, err := c.read(); return err },
	} {
		synctest.Test(t, func(t *testing.T) {
			donor := fakeDonor{play: play}
			err := donor.against(t.Context(), t, new(list), time.Second)
			if err == nil || !slices.Equal(donor.givenUp, []uint32{errInterrupted}) {
				t.Errorf("%s: %v, and the donor was told %v", name, err, donor.givenUp)
			}
		})
	}
}

func TestADonorThatWasNotVerifiedSendsNoData(t *testing.T) {
	from := origin()
	from.Config["innodb_page_size"] = "4096"
	donor := fakeDonor{from: from, play: func(*conn) error { t.Error("the donor was asked for data"); return io.EOF }}
	var got list
	if err := donor.against(t.Context(), t, &got, time.Second); !errors.Is(err, PageSize) || got.from.Config != nil {
		t.Errorf("%v", err)
	}
}

func TestASessionEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	donor := fakeDonor{play: func(c *conn) error {
		_ = tell(c, scene()[0])
		cancel(enough)
		_, err := c.read()
		return err
	}}
	began := time.Now()
	if err := donor.against(ctx, t, new(list), time.Minute); !errors.Is(err, enough) ||
		time.Since(began) > 5*time.Second {
		t.Errorf("%v after %s", err, time.Since(began))
	}
	if !slices.Equal(donor.givenUp, []uint32{errInterrupted}) {
		t.Errorf("the donor was told %v", donor.givenUp)
	}
}

func TestNothingIsSaidWithoutTLS(t *testing.T) {
	if err := Snapshot(t.Context(), Donor{Address: "127.0.0.1:1"}, new(list)); !errors.Is(err, NeedsTLS) {
		t.Errorf("%v", err)
	}
}

// FuzzOrigin: nothing that a donor tells about itself makes it panic.
func FuzzOrigin(f *testing.F) {
	f.Add(byte(responsePluginV2), text("clone", "mysql_clone.so"))
	f.Add(byte(responseConfig), text("version", "9.7.4"))
	f.Add(byte(responseCollation), []byte{0xff, 0xff, 0xff, 0xff, 'x'})
	f.Fuzz(func(t *testing.T, code byte, body []byte) {
		from := Origin{Config: map[string]string{}}
		if err := from.learn(code, body); err == nil && len(from.Plugins)+len(from.Collations)+len(from.Config) != 1 {
			t.Errorf("response %d of %x tells %+v", code, body, from)
		}
		_, _, _ = parseLocators(body)
		_, _ = parseDescriptorMessage(body)
		_ = parseFailure(body)
		_ = parseError(body)
		_, _ = parseGreeting(body)
		_, _ = parseRow(body)
	})
}

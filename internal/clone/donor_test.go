package clone

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"cnmsql.co/internal/mysql"
)

// counter is a Consumer that throws everything away.
type counter struct {
	bytes, records int64
}

func (c *counter) Begin(context.Context, Origin) error { return nil }
func (c *counter) Take(_ context.Context, r Record) error {
	c.bytes += int64(len(r.Data))
	c.records++
	return nil
}
func (c *counter) Accept(context.Context, State) error { return nil }

// refusedByTheDonor: each refusal has its name, and leaves nothing behind.
func refusedByTheDonor(t *testing.T, donor *server) {
	try := func(what string, d Donor, why *Reason) {
		t.Helper()
		var said *DonorError
		if err := Snapshot(t.Context(), d, new(counter)); !errors.Is(err, why) || !errors.As(err, &said) {
			t.Errorf("%s: %v", what, err)
		}
	}
	d := donor.donor()
	d.Password = "wrong"
	try("a wrong password", d, LoginDenied)

	donor.Exec("CREATE USER nobody IDENTIFIED WITH caching_sha2_password BY 'secret'")
	d = donor.donor()
	d.User = "nobody"
	try("an account without privilege", d, NoPrivilege)

	donor.Exec("ALTER INSTANCE DISABLE INNODB REDO_LOG")
	try("no redo log", donor.donor(), RedoLogDisabled)
	donor.Exec("ALTER INSTANCE ENABLE INNODB REDO_LOG")

	donor.Exec("UNINSTALL PLUGIN clone")
	try("no plugin", donor.donor(), NoPlugin)
	donor.Exec("INSTALL PLUGIN clone SONAME 'mysql_clone.so'")

	d = donor.donor()
	d.TLS = d.TLS.Clone()
	d.TLS.RootCAs = nil
	if err := Snapshot(t.Context(), d, new(counter)); err == nil {
		t.Error("a certificate that nobody knows is trusted")
	}
}

// memoryIsBounded: what the buffers take does not depend on how much data there is.
func memoryIsBounded(t *testing.T, donor *server) {
	const most = 16 << 20
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var c counter
	var peak uint64
	began := time.Now()
	must(t, Snapshot(t.Context(), donor.donor(), &hooks{Consumer: &c, take: func(Record) error {
		if c.records%20 == 0 {
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapInuse)
		}
		return nil
	}}))
	took := time.Since(began)
	runtime.ReadMemStats(&now)
	grown, made := int64(peak)-int64(before.HeapInuse), now.TotalAlloc-before.TotalAlloc
	t.Logf("%d records of %.1f MiB in %s; the heap grew by at most %.1f MiB, and %.1f MiB were allocated in all",
		c.records, float64(c.bytes)/(1<<20), took, float64(grown)/(1<<20), float64(made)/(1<<20))
	if c.bytes < 8*most {
		t.Errorf("only %d bytes were cloned: that tells nothing of memory", c.bytes)
	}
	if grown > most || made > uint64(c.bytes)/4 {
		t.Errorf("the heap grew by %d bytes, and %d were allocated", grown, made)
	}
}

// secondClone: a donor serves one clone at a time, and the first does not suffer.
func secondClone(t *testing.T, donor *server) {
	tried := false
	must(t, Snapshot(t.Context(), donor.donor(), &hooks{Consumer: new(counter), take: func(r Record) error {
		if !r.IsData() || tried {
			return nil
		}
		tried = true
		if err := Snapshot(t.Context(), donor.donor(), new(counter)); !errors.Is(err, CloneRunning) {
			t.Errorf("the second says %v", err)
		}
		return nil
	}}))
	if !tried {
		t.Error("no second clone was tried")
	}
}

// proxy carries connections to donors, in turn; cut ends all of them as a network does.
type proxy struct {
	listener net.Listener
	conns    chan net.Conn
}

func newProxy(t *testing.T, to ...string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	p := &proxy{l, make(chan net.Conn, 10)}
	go func() {
		for n := 0; ; n++ {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to[n%len(to)])
			if err != nil {
				_ = in.Close()
				continue
			}
			p.conns <- in
			p.conns <- out
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
		}
	}()
	return p
}

func (p *proxy) cut() {
	for len(p.conns) > 0 {
		_ = (<-p.conns).Close()
	}
}

// connectionIsCut: a lost connection is told by name, nothing goes on running, and the
// donor serves the next clone once it has noticed, which takes it some five seconds.
func connectionIsCut(t *testing.T, donor *server) {
	for _, state := range []State{StateFileCopy, StateRedoCopy} {
		d := donor.donor()
		p := newProxy(t, d.Address)
		d.Address = p.listener.Addr().String()
		before := runtime.NumGoroutine()
		err := eventually(t, d, &hooks{Consumer: new(counter), take: func(r Record) error {
			if stateOf(r) == state {
				p.cut()
			}
			return nil
		}})
		if !errors.Is(err, ConnectionLost) {
			t.Errorf("cut in %s: %v", state, err)
		}
		_ = p.listener.Close()
		awaitGoroutines(t, before-1) // that which accepts ends, too
	}
	must(t, eventually(t, donor.donor(), new(counter)))
}

// twoServersAreRefused holds that behind an address that leads to two servers neither is asked for a
// clone, and that each serves one by itself.
func twoServersAreRefused(t *testing.T, donor *server) {
	other := newServer(t)
	other.Initialize()
	other.start(4)
	other.account()
	d := donor.donor()
	d.Address = newProxy(t, donor.Address(), other.Address()).listener.Addr().String()
	d.TLS = d.TLS.Clone()
	d.TLS.InsecureSkipVerify = true // each has an authority of its own
	c := new(counter)
	err := Snapshot(t.Context(), d, c)
	if !errors.Is(err, TwoServers) || c.records > 0 {
		t.Errorf("%d records came: %v", c.records, err)
	}
	for _, s := range []*server{donor, other} {
		if uuid := s.Text("SELECT @@server_uuid"); err == nil || !strings.Contains(err.Error(), uuid) {
			t.Errorf("%s is not in %v", uuid, err)
		}
		must(t, Snapshot(t.Context(), s.donor(), new(counter)))
	}
}

// eventually clones as soon as the donor has noticed that the clone before is over.
func eventually(t *testing.T, d Donor, to Consumer) error {
	for deadline := time.Now().Add(patience); ; <-time.After(100 * time.Millisecond) {
		if err := Snapshot(t.Context(), d, to); !errors.Is(err, CloneRunning) || time.Now().After(deadline) {
			return err
		}
	}
}

// givenUp: a donor that was told so serves the next clone at once, whatever it was at.
func givenUp(t *testing.T, donor *server) {
	full := errors.New("the store is full")
	for _, state := range []State{StateFileCopy, StatePageCopy, StateRedoCopy} {
		before := runtime.NumGoroutine()
		ctx, cancel := context.WithCancelCause(t.Context())
		for what, h := range map[string]*hooks{
			"with a record": {Consumer: new(counter), take: func(r Record) error {
				if stateOf(r) == state {
					return full
				}
				return nil
			}},
			"with a state": {Consumer: new(counter), accept: func(s State) error {
				if s == state {
					return full
				}
				return nil
			}},
			"with its context": {Consumer: new(counter), take: func(r Record) error {
				if stateOf(r) == state {
					cancel(full)
				}
				return nil
			}},
		} {
			began := time.Now()
			err := Snapshot(ctx, donor.donor(), h)
			if !errors.Is(err, full) || time.Since(began) > farewell+3*time.Second {
				t.Errorf("%s of %s, after %s: %v", what, state, time.Since(began), err)
			}
			if err := Snapshot(t.Context(), donor.donor(), new(counter)); err != nil {
				t.Errorf("%s of %s, the next: %v", what, state, err)
			}
			if ctx.Err() != nil {
				ctx, cancel = context.WithCancelCause(t.Context())
			}
		}
		cancel(nil)
		awaitGoroutines(t, before)
	}
}

func awaitGoroutines(t *testing.T, most int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > most; <-time.After(
		5 * time.Millisecond) {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines go on, of %d:\n%s", runtime.NumGoroutine(), most,
				stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// encryptedIsRefused: by the list of files, or when DDL makes one meanwhile.
func encryptedIsRefused(t *testing.T, donor *server) {
	try := func(h *hooks) {
		t.Helper()
		if err := Snapshot(t.Context(), donor.donor(), h); !errors.Is(err, Encrypted) {
			t.Errorf("%v", err)
		}
	}
	donor.Exec("CREATE TABLE zoo.secret (id INT PRIMARY KEY) ENCRYPTION='Y'")
	c := new(counter)
	try(&hooks{Consumer: c})
	if c.bytes > 0 {
		t.Errorf("%d bytes were sent before it was refused", c.bytes)
	}
	donor.Exec("DROP TABLE zoo.secret")
	try(&hooks{Consumer: new(counter), accept: func(s State) error {
		if s == StateFileCopy {
			donor.Exec("CREATE TABLE zoo.secret (id INT PRIMARY KEY) ENCRYPTION='Y'")
		}
		return nil
	}})
	donor.Exec("DROP TABLE zoo.secret")
}

// appliedLive: donor to directory, and the server on it has what the donor has.
func appliedLive(t *testing.T, donor *server) {
	restored := newServer(t)
	must(t, os.Mkdir(restored.Data(), 0o755))
	root, err := os.OpenRoot(restored.Data())
	must(t, err)
	defer func() { must(t, root.Close()) }()
	applier := NewApplier(root)
	defer func() { must(t, applier.Close()) }()
	began := time.Now()
	must(t, Snapshot(t.Context(), donor.donor(), applier))
	must(t, applier.Finish(t.Context()))
	t.Logf("applied in %s", time.Since(began))
	restored.start(3)
	if got, want := restored.Text("SELECT @@gtid_executed"), donor.Text("SELECT @@gtid_executed"); got != want {
		t.Errorf("the restored server has %s, and the donor %s", got, want)
	}
	compare(t, restored, donor)
}

// encryptedLogsAreRefused: by the stream, which comes to the redo log last, and before it by a
// question. It is the last step, for logs that were encrypted once stay so for a while.
func encryptedLogsAreRefused(t *testing.T, donor *server) {
	d := donor.donor()
	conf := d.TLS.Clone()
	conf.ServerName = "127.0.0.1"
	for _, variable := range []string{"innodb_redo_log_encrypt", "innodb_undo_log_encrypt"} {
		encrypted := func() []string {
			names, err := mysql.EncryptedLogsAt(t.Context(), d.Address, conf, mysql.Account{User: d.User,
				Password: d.Password})
			must(t, err)
			return names
		}
		if got := encrypted(); len(got) > 0 {
			t.Errorf("before: %q", got)
		}
		donor.Exec("SET GLOBAL " + variable + "=ON")
		if got := encrypted(); !slices.Equal(got, []string{variable}) {
			t.Errorf("got %q", got)
		}
		err := Snapshot(t.Context(), d, &hooks{Consumer: NewCutter(newStore(t), 8<<20)})
		if !errors.Is(err, LogsEncrypted) || !strings.Contains(err.Error(), variable) {
			t.Errorf("%s: %v", variable, err)
		}
		donor.Exec("SET GLOBAL " + variable + "=OFF")
	}
}

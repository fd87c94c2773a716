package instance

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/mysql"
)

// envTestDir tells a process that it is one that becomes another; see TestHandover.
const envTestDir = "HANDOVER_TEST_DIR"

// TestHandover starts a process that has a child, a lock, and knowledge, and becomes
// another binary: its child goes on, no line of what it prints is lost, nobody else gets
// the lock meanwhile, and what was known is known. One that cannot be become changes
// nothing.
func TestHandover(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=TestHandoverProcess")
	cmd.Env = append(os.Environ(), envTestDir+"="+dir)
	out, err := cmd.StdoutPipe()
	must(t, err)
	cmd.Stderr = os.Stderr
	must(t, cmd.Start())
	lines, before, said := 0, 0, map[string]string{}
	for s := bufio.NewScanner(out); s.Scan(); {
		var line struct{ Msg, Is string }
		if json.Unmarshal(s.Bytes(), &line) != nil {
			continue // the testing package's
		}
		if n, counted := strings.CutPrefix(line.Msg, "line "); counted {
			if lines++; n != strings.Repeat("i", lines) {
				t.Fatalf("after line %d came %q", lines-1, line.Msg)
			}
			continue
		}
		said[line.Msg] = line.Is
		if line.Msg == "has taken over" {
			before = lines
			if isFree(t, dir) {
				t.Error("the lock on the volume was given back")
			}
		}
	}
	must(t, cmd.Wait())
	for what, want := range map[string]string{
		"has taken over": "", "epoch": "7", "lease": "fresh", "former": "secret", "server and vouches": "9.7.4",
		"ending": "mysqld was ended by signal 9 (killed)",
	} {
		if is, ok := said[what]; !ok || is != want {
			t.Errorf("%s: it said %q, want %q; all it said: %v", what, is, want, said)
		}
	}
	if before == 0 || lines == before {
		t.Errorf("%d lines before it had taken over, and %d after", before, lines-before)
	}
}

// isFree tells whether somebody else could lock the volume.
func isFree(t *testing.T, dir string) bool {
	f, err := os.Open(filepath.Join(dir, "meta", "lock"))
	must(t, err)
	defer func() { _ = f.Close() }()
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

// TestHandoverProcess is not a test but the process of TestHandover.
func TestHandoverProcess(t *testing.T) {
	dir := os.Getenv(envTestDir)
	if dir == "" {
		t.Skip("runs as a process of TestHandover")
	}
	m := managerIn(dir, os.Stdout)
	left, err := readHandover()
	must(t, err)
	if left == nil {
		giveToNewBinary(t, m)
	}
	takeFromGiver(t, m, left)
}

func giveToNewBinary(t *testing.T, m *manager) {
	must(t, m.tryVolume(t.Context()))
	m.launcher.setServer(binary{version: mysql.Version{Major: 9, Minor: 7, Patch: 4, Text: "9.7.4"},
		command: []string{"/bin/sh", "-c", `n=i; while :; do printf 'line %s\n' "$n"; n=i$n; sleep 0.01; done`}})
	p, err := m.launcher.spawn()
	must(t, err)
	m.lease.hold(7, time.Now())
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "ns", UID: types.UID("u-1")}}
	c.Spec.Instances, c.Status.PrimaryEpoch = 3, 7
	m.setCluster(c)
	m.update(func(s *state) {
		s.mysqld.proc, s.mysqld.accepted, s.mysqld.mayWrite, s.mysqld.writable = p, true, true, 7
		s.access.former = []mysql.Account{{User: "c", Password: "secret"}}
		s.status.server, s.status.at = &core.Server{UUID: "u-9", SemiSync: core.SemiSync{Acks: 2}}, time.Now()
	})
	m.voucher.note(7, "db-2", time.Now())
	m.attend(p) // it was accepted before: nobody asks whether it is up
	time.Sleep(100 * time.Millisecond)
	if err := m.handOver(m.opt.Dirs.Run + "/nothing"); err == nil {
		t.Fatal("it became what does not exist")
	}
	time.Sleep(100 * time.Millisecond) // all goes on as before, until
	t.Fatal(m.handOver(os.Args[0]))
}

func takeFromGiver(t *testing.T, m *manager, left *handover) {
	must(t, m.takeOver(left))
	m.log.Info("has taken over")
	m.log.Info("epoch", "is", string('0'+rune(get(m, func(s *state) int64 { return s.mysqld.writable }))))
	if epoch, renewed := m.lease.held(); epoch == 7 && time.Since(renewed) > 50*time.Millisecond &&
		time.Since(renewed) < 10*time.Second {
		m.log.Info("lease", "is", "fresh")
	}
	get(m, func(s *state) any {
		vouches := m.voucher.vouches
		at, vouched := vouches.Last["db-2"]
		server := s.status.server
		if server != nil && server.UUID == "u-9" && server.SemiSync.Acks == 2 && vouched && vouches.Epoch == 7 &&
			time.Since(at) < 10*time.Second {
			m.log.Info("server and vouches", "is", m.launcher.version().Text)
		}
		return nil
	})
	m.log.Info("former", "is", get(m, func(s *state) string { return s.access.former[0].Password }))
	time.Sleep(100 * time.Millisecond)
	p := get(m, func(s *state) *process { return s.mysqld.proc })
	must(t, p.kill(t.Context()))
	m.log.Info("ending", "is", p.ending())
}

// What cannot take over is refused with the reason, is not tried again, and nothing has
// happened.
func TestABinaryThatCannotTakeOverIsRefused(t *testing.T) {
	dir := t.TempDir()
	m := managerIn(dir, io.Discard)
	send := func(binary, digest string) string {
		sum := sha256.Sum256([]byte(binary))
		digest = cmp.Or(digest, hex.EncodeToString(sum[:]))
		err := m.replacer.ReplaceManager(t.Context(), digest, strings.NewReader(binary))
		if err == nil {
			return ""
		}
		return err.Error()
	}
	takesOver := "#!/bin/sh\necho " + strconv.Itoa(HandoverFormat)
	for _, c := range []struct{ about, binary, digest, want string }{
		{"the volume is not locked", takesOver, "", "Busy: it has not yet locked its own volume"},
		{"the volume is locked now", takesOver, "0123", "BinaryDamaged: what arrived has the digest"},
		{"it is of another format", "#!/bin/sh\necho 99", "",
			"BinaryRefused: it takes over from managers that speak format 99"},
		{"it ends with an error", "#!/bin/sh\nexit 3", "", "BinaryRefused: it does not run here: exit status 3"},
		{"it is no program", "hello", "", "BinaryRefused: it does not run here: fork/exec"},
		{"it was refused before", "hello", "", "BinaryRefused: it does not run here: fork/exec"},
		{"it can", takesOver, "", ""},
	} {
		if got := send(c.binary, c.digest); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", c.about, got, c.want)
		}
		if m.record == nil {
			must(t, m.tryVolume(t.Context()))
			m.setCluster(&v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "db", UID: "u-1"}})
		}
	}
	<-time.After(2 * answerTime)
	if m.replacer.newBinary() == nil {
		t.Fatal("what can take over is not about to")
	}
	m.terminate()
	m.replacer.giveWay()
	if files, _ := filepath.Glob(m.opt.Dirs.newBinaryFile("*")); len(files) > 0 {
		t.Errorf("these are left of binaries that did not take over: %v", files)
	}
}

// What is said of a binary that cannot be kept is the same each time, or the Cluster's status would
// change with each.
func TestABinaryThatCannotBeKeptIsToldInTheSameWords(t *testing.T) {
	dir := t.TempDir()
	m := managerIn(dir, io.Discard)
	must(t, m.tryVolume(t.Context()))
	m.setCluster(&v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "db", UID: "u-1"}})
	must(t, os.WriteFile(dir+"/file", nil, 0o600))
	m.replacer.dirs.Run = dir + "/file"
	want := "keeping the binary below " + dir + "/file: not a directory"
	for range 2 {
		err := m.replacer.ReplaceManager(t.Context(), "0123", strings.NewReader(""))
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// What took over and did not last is not tried for ever.
func TestABinaryWhoseContainerEndedIsNotTriedForEver(t *testing.T) {
	for _, c := range []struct {
		about string
		was   tried
		want  string
	}{
		{"it had not proven itself", tried{Digest: "d"}, "its container ended within 1m0s after it took over"},
		{"it had, and the container ended for the first time", tried{Digest: "d", Proven: true}, ""},
		{"it ended once more", tried{Digest: "d", Proven: true, Ends: 1},
			"its container ended 2 times since it took over first"},
		{"none has taken over", tried{}, ""},
	} {
		dir := t.TempDir()
		m := newManager(Options{Log: io.Discard, Dirs: Dirs{Run: dir}}.withDefaults())
		if c.was.Digest != "" {
			must(t, m.replacer.rememberTried(c.was))
		}
		m.replacer.knowBinary(t.Context())
		got := ""
		if _, r := m.replacer.report(); r != nil {
			got = r.Why
		}
		if got != c.want {
			t.Errorf("%s: refused because %q, want %q", c.about, got, c.want)
		}
		if after := m.replacer.readTried(); c.was.Digest != "" && after.Ends != c.was.Ends+1 {
			t.Errorf("%s: %d ends are remembered", c.about, after.Ends)
		}
	}
}

// TestHandoverKeepsItsFormat holds what is handed over to the names of format 1: a manager of
// another release reads them, and takes what it does not find for zero.
func TestHandoverKeepsItsFormat(t *testing.T) {
	all := handover{Volume: &handoverVolume{}, Mysqld: &handoverMysqld{}, Former: []handoverAccount{{}}}
	text, err := json.Marshal(all)
	must(t, err)
	for part, want := range map[string]string{
		"": "checked cluster command donor downSince endReason ended failures format former lagging lease lock" +
			" member mysqld restart restarts seen version volume vouches wasFenced withheld withheldAt",
		"volume": "data foreign record",
		"member": "admitted admittedEpoch protocolOf rebootEpoch rejoinHeld settled",
		"mysqld": "accepted mayWrite output pid serverAt started writable",
	} {
		var all map[string]json.RawMessage
		must(t, json.Unmarshal(text, &all))
		if part != "" {
			inside := all[part]
			clear(all)
			must(t, json.Unmarshal(inside, &all))
		}
		if got := strings.Join(slices.Sorted(maps.Keys(all)), " "); got != want {
			t.Errorf("%q is handed over with\n%s, want\n%s", part, got, want)
		}
	}
	if HandoverFormat != 1 {
		t.Errorf("format %d has names of its own: write them here", HandoverFormat)
	}
}

// Whoever takes a view may wait for the record while it holds the manager's mutex: one that hands over
// at that time must not hold the record and wait for the mutex.
func TestAHandoverAndAViewDoNotWaitForEachOther(t *testing.T) {
	m := managerIn(t.TempDir(), io.Discard)
	must(t, m.tryVolume(t.Context()))
	m.setCluster(&v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "db", UID: "u-1"}})
	m.mu.Lock()
	handed, changed := make(chan error, 1), make(chan error, 1)
	go func() { handed <- m.handOver(m.opt.Dirs.Run + "/nothing") }()
	until(t, "the handover waits for the mutex", func() bool {
		if m.disk.underway.TryLock() {
			m.disk.underway.Unlock()
			return false
		}
		return true
	})
	go func() { changed <- m.record.change(func(r *volumeRecord) { r.NoWritesBelow = 7 }) }()
	select {
	case err := <-changed:
		must(t, err)
	case <-time.After(5 * time.Second):
		t.Error("the record cannot be changed while the mutex is held")
	}
	m.mu.Unlock()
	if err := <-handed; err == nil {
		t.Error("it became what does not exist")
	}
	m.record.changing.Lock()
	err := m.handOver(m.opt.Dirs.Run + "/nothing")
	m.record.changing.Unlock()
	if err == nil || err.Error() != "what the manager must remember is being kept" {
		t.Errorf("while the record is changed it says %v", err)
	}
	m.record.close()
}

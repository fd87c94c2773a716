package instance

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// stall makes whoever opens the file for writing wait until the function that is
// returned is called, as a disk that stalls does.
func stall(t *testing.T, file string) (goOn func()) {
	t.Helper()
	must(t, syscall.Mkfifo(file, 0o600))
	return func() {
		f, err := os.OpenFile(file, os.O_RDWR, 0)
		must(t, err)
		t.Cleanup(func() { _ = f.Close() })
		must(t, os.Remove(file))
	}
}

func TestAStalledDiskHoldsUpOnlyTheChangeThatNeedsIt(t *testing.T) {
	dir := t.TempDir()
	m, err := lockVolume(context.Background(), dir)
	must(t, err)
	spare := filepath.Join(dir, "state.json.new")
	must(t, os.Remove(spare))
	goOn := stall(t, spare)
	changed := make(chan struct{})
	go func() {
		defer close(changed)
		_ = m.change(func(r *volumeRecord) { r.NoWritesBelow = 7 })
	}()
	asked := make(chan int64)
	go func() {
		<-time.After(50 * time.Millisecond)
		asked <- m.get().NoWritesBelow
	}()
	select {
	case below := <-asked:
		if below != 0 {
			t.Errorf("it remembers the promise %d, which is not kept yet", below)
		}
	case <-changed:
		t.Error("the change did not wait for the disk")
	case <-time.After(5 * time.Second):
		t.Error("whoever only asks waits for the disk, too")
	}
	goOn()
	<-changed
}

// A volume that stalls while it becomes the Cluster's holds up what takes the view, and nobody else.
func TestAVolumeThatStallsWhileItIsAdoptedHoldsUpNoProbe(t *testing.T) {
	m := newManager(Options{Instance: "db-1", Dirs: Dirs{Meta: t.TempDir(), Data: t.TempDir()}, Log: io.Discard}.
		withDefaults())
	m.lease = &lease{}
	must(t, m.tryVolume(t.Context()))
	spare := filepath.Join(m.opt.Dirs.Meta, "state.json.new")
	must(t, os.Remove(spare))
	goOn := stall(t, spare)
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "ns", UID: "uid-1"}}
	taken := make(chan struct{})
	go func() { m.setCluster(c); close(taken) }()
	until(t, "the volume is written to", func() bool {
		isFree := m.record.changing.TryLock()
		if isFree {
			m.record.changing.Unlock()
		}
		return !isFree
	})
	m.isolator.looks.beat(m.isolator.began)
	if why := newProber(m).notAlive(); why != "" {
		t.Errorf("it is not alive: %s", why)
	}
	select {
	case <-taken:
		t.Error("the view was taken before the volume was the Cluster's")
	default:
	}
	goOn()
	<-taken
	m.setCluster(c) // what stalls a file cannot be brought to disk
	if uid := m.record.get().ClusterUID; uid != "uid-1" || m.facts().Foreign {
		t.Errorf("the volume is that of %q", uid)
	}
}

// A volume that answers with errors (EIO, or EROFS once the kernel has mounted it read-only) completes no
// write either, though no write waits. One that is full is told of by itself.
func TestAVolumeThatFailsEachWriteStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "volume")
		d := &diskTrier{dir: dir, log: slog.New(slog.DiscardHandler)}
		triedFor := func(seconds int) {
			var file *os.File
			for range seconds {
				file = d.tryVolumeOnce(file)
				<-time.After(time.Second)
			}
			if file != nil {
				must(t, file.Close())
			}
		}
		triedFor(5)
		if d.stalls() {
			t.Error("it stalls after five seconds")
		}
		triedFor(2)
		if !d.stalls() {
			t.Error("it does not stall after seven seconds of errors")
		}
		must(t, os.Mkdir(dir, 0o700))
		triedFor(1)
		if d.stalls() {
			t.Error("it stalls after it completed a write")
		}
		must(t, os.Remove(filepath.Join(dir, "try")))
		must(t, os.Symlink("/dev/full", filepath.Join(dir, "try")))
		triedFor(20)
		if d.stalls() {
			t.Error("it stalls where there is no room")
		}
	})
}

func TestAPrimaryWhoseVolumeStallsIsHungAndRenewsNoLease(t *testing.T) {
	w := newWorld(t, nil)
	one := w.start(1)
	must(t, os.MkdirAll(one.opt.Dirs.Meta, 0o755))
	goOn := stall(t, filepath.Join(one.opt.Dirs.Meta, "try"))
	w.bootstrap(one)
	r := w.await(one, "hung", func(r core.Report) bool { return r.State == core.Hung })
	if r.Reason != core.InstanceDiskStalled || r.Server != nil {
		t.Errorf("it says %s %s, and of its server %+v", r.State, r.Reason, r.Server)
	}
	if one.m.answeredWithin(time.Minute) {
		t.Error("it would renew its lease")
	}
	goOn()
	w.await(one, "writable", func(r core.Report) bool { return r.State == core.Running && r.WritableEpoch == 1 })
}

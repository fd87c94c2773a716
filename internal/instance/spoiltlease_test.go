package instance

import (
	"strconv"
	"testing"

	"cnmsql.co/api/v1alpha1"
)

// writeLease is somebody who may edit Leases, or the operator.
func (w *world) writeLease(holder string, epoch int64) {
	w.kube.mu.Lock()
	defer w.kube.mu.Unlock()
	w.kube.version++
	w.kube.lease.Spec.HolderIdentity = &holder
	w.kube.lease.Annotations = map[string]string{v1alpha1.AnnotationEpoch: strconv.FormatInt(epoch, 10)}
	w.kube.lease.ResourceVersion = strconv.Itoa(w.kube.version)
}

// TestARecordThatIsSetBackIsTakenAgain: somebody wrote an epoch into it that nobody reaches. The
// primary gives way, and takes it in its own epoch once the operator has set it back.
func TestARecordThatIsSetBackIsTakenAgain(t *testing.T) {
	w := newWorld(t, nil)
	one := w.start(1)
	w.bootstrap(one)
	until(t, "it holds the lease", func() bool { who, _ := w.kube.holder(); return who == "db-1" })
	_, epoch := w.kube.holder()
	w.writeLease("edl-9", 999999999999999999)
	until(t, "it gives way", func() bool { held, _ := one.m.lease.held(); return held == 0 })
	w.writeLease("", epoch)
	until(t, "it holds the lease again", func() bool { who, _ := w.kube.holder(); return who == "db-1" })
	until(t, "it takes writes", func() bool { return one.report().WritableEpoch == epoch })
}

package instance

import (
	"errors"
	"io"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
)

// ordered gives an order to a manager that is about to end, and whose group is still asked for
// another primary: nothing is done. It returns the name of its refusal.
func ordered(t *testing.T, o control.Order) core.Reason {
	t.Helper()
	dir := t.TempDir()
	m := newManager(Options{Cluster: "db", Instance: "db-1", Log: io.Discard, Dirs: Dirs{Data: dir + "/data",
		Meta: dir + "/meta"}}.withDefaults())
	must(t, m.tryVolume(t.Context()))
	defer m.record.close()
	m.setCluster(&v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "db", UID: "u-1"},
		Status: v1alpha1.ClusterStatus{PrimaryEpoch: 3}})
	m.lease = &lease{}
	m.membership.change(func(s *memberState) { s.HandingTo = "another" })
	close(m.ended)
	err := m.Order(t.Context(), o)
	if seen := get(m, func(s *state) int64 { return s.cluster.seen }); seen != max(3, o.OfEpoch()) {
		t.Errorf("%s: epoch %d is the highest that it has seen", o.Verb(), seen)
	}
	var no *control.Refusal
	if errors.As(err, &no) {
		return no.Reason
	}
	return ""
}

func TestAManagerCarriesOutEveryOrder(t *testing.T) {
	for _, row := range control.Orders() {
		o := reflect.New(reflect.TypeOf(row)).Elem()
		o.FieldByName("Epoch").SetInt(4)
		if no := ordered(t, o.Interface().(control.Order)); no == core.OrderUnknown {
			t.Errorf("there is nothing that carries out the order %s", row.Verb())
		}
	}
}

// The epoch of an order that is not known counts like that of any other.
func TestAnOrderOfALaterOperatorIsRefused(t *testing.T) {
	for epoch, want := range map[int64]core.Reason{2: core.OrderStaleEpoch, 4: core.OrderUnknown} {
		if no := ordered(t, control.Unknown{Name: "later", Epoch: epoch}); no != want {
			t.Errorf("in epoch %d it is refused with %q; want %s", epoch, no, want)
		}
	}
}

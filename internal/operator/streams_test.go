package operator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

func snapshot(boot string, asked, taken time.Duration) control.Snapshot {
	return control.Snapshot{Asked: asked.Nanoseconds(), Taken: taken.Nanoseconds(), Made: taken.Nanoseconds(),
		Report: core.Report{Boot: boot}}
}

func TestAReportIsNeverTakenForYoungerThanItCanBe(t *testing.T) {
	begun := time.Now().Add(-5 * time.Second)
	st := &stream{}
	// What a stream says first was read before the stream was asked for.
	st.hear(snapshot("a", 10*time.Second, 9600*time.Millisecond), begun)
	if got, want := st.heard().Report.NotBefore(), begun.Add(-400*time.Millisecond); !got.Equal(want) {
		t.Errorf("the first report is %s from the request, want %s", got.Sub(begun), want.Sub(begun))
	}
	st.hear(snapshot("a", 10*time.Second, 11*time.Second), begun)
	if got, want := st.heard().Report.NotBefore(), begun.Add(time.Second); !got.Equal(want) {
		t.Errorf("the second report is %s from the request, want %s", got.Sub(begun), want.Sub(begun))
	}
	// An answer that was asked for later, on a quicker way, bounds all the more.
	later := begun.Add(1500 * time.Millisecond)
	st.hear(snapshot("a", 11200*time.Millisecond, 11210*time.Millisecond), later)
	if got, want := st.heard().Report.NotBefore(), later.Add(10*time.Millisecond); !got.Equal(want) {
		t.Errorf("the answer is %s from its request, want %s", got.Sub(later), want.Sub(later))
	}
	// And what the stream says after it is not dropped for its looser bound.
	st.hear(snapshot("a", 10*time.Second, 11220*time.Millisecond), begun)
	if got, want := st.heard().Report.NotBefore(), later.Add(20*time.Millisecond); !got.Equal(want) {
		t.Errorf("the stream's next report is %s from the request, want %s", got.Sub(later), want.Sub(later))
	}
}

func TestAnOvertakenReportIsDropped(t *testing.T) {
	st := &stream{}
	st.hear(snapshot("a", 5*time.Second, 6*time.Second), time.Now())
	old := snapshot("a", 5*time.Second, 5500*time.Millisecond)
	old.Report.State = core.Stopped
	if st.hear(old, time.Now()) {
		t.Error("a report that was overtaken counts")
	}
	if r, _ := st.heard().Report.Get(); r.State == core.Stopped {
		t.Error("a report that was overtaken replaced a younger one")
	}
	restarted := snapshot("b", 0, time.Millisecond)
	restarted.Report.State = core.Starting
	if !st.hear(restarted, time.Now()) {
		t.Error("a restarted manager, whose clock starts again, is not heard")
	}
}

// unconnected are streams that call nobody: what they hear is put into them.
func unconnected() *Streams {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return NewStreams(ctx, logr.Discard(), func(types.NamespacedName) {})
}

// A report counts for the Pod whose manager made it, by whatever certificate it was asked for.
func TestWhatAPodHasSaidOutlivesACertificate(t *testing.T) {
	was := endpoint{podUID: "first", address: "10.0.0.1", tls: &tls.Config{}}
	renewed, anew, moved := was, was, was
	renewed.tls, anew.podUID, moved.address = &tls.Config{}, "again", "10.0.0.2"
	for name, c := range map[string]struct {
		to   endpoint
		word bool
	}{"the same": {was, true}, "a new certificate": {renewed, true}, "a new Pod": {anew, false},
		"a new address": {moved, false}} {
		t.Run(name, func(t *testing.T) {
			s := unconnected()
			s.Keep(clusterKey, "c-1", was)
			st := s.stream("ns", "c-1")
			st.hear(snapshot("a", time.Second, time.Second), time.Now())
			st.hear(snapshot("a", time.Second, 3*time.Second), time.Now())
			s.Keep(clusterKey, "c-1", c.to)
			got, now := s.Heard("ns", "c-1"), s.stream("ns", "c-1")
			if got.Report.Known() != c.word || len(got.Earlier()) > 0 != c.word || !got.Latest.Known() {
				t.Errorf("the report is known: %t, with %d earlier; the last word: %t", got.Report.Known(),
					len(got.Earlier()), got.Latest.Known())
			}
			if isHeard := now.hear(snapshot("a", time.Second, 2*time.Second), time.Now()); isHeard && c.word {
				t.Error("a report that was overtaken counts again")
			}
			now.lose(errors.New("it does not take this certificate"))
			if s.Heard("ns", "c-1").Report.Known() {
				t.Error("a manager that cannot be reached by the new certificate counts as heard")
			}
		})
	}
}

// The operator renews its own certificate while all is well.
func TestARenewedCertificateTakesNoClusterForUnreachable(t *testing.T) {
	c, ca := aCluster(), anAuthority(t)
	c.Spec.Instances, c.Status.InstanceNames, c.Status.Promotion.Size = 1, []string{"c-1"}, 1
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	api := newAPI(t, node, c, aPod("c-1", "first", "n1"), bound(t, "c-1"))
	r := newTestReconciler(t, api, api)
	r.streams = unconnected()
	r.observer.streams = r.streams
	must(t, r.listen(t.Context(), c, ca))
	word := snapshot("a", time.Second, time.Second)
	word.Report = core.Report{Boot: "a", Instance: "c-1", PodUID: "first", State: core.Running,
		Data: core.DataPopulated, WritableEpoch: 1, SeenEpoch: 1, Server: &core.Server{UUID: "u1"}}
	before := r.streams.stream("ns", "c-1")
	before.hear(word, time.Now())
	r.state(c).tls.made = time.Now().Add(-operatorTLSLife - time.Minute)
	must(t, r.listen(t.Context(), c, ca))
	if r.streams.stream("ns", "c-1") == before {
		t.Fatal("the certificate is not renewed")
	}
	_, plan, err := r.decide(t.Context(), c, nil)
	if must(t, err); plan.Status.Diagnosis != core.PrimaryHealthy {
		t.Errorf("the Cluster is told to be %s: %s", plan.Status.Diagnosis, plan.Status.Reason)
	}
}

// A certificate goes by wall clocks, whichever way one was wrong when it was made.
func TestACertificateIsNotKeptForWhatAWrongClockSaid(t *testing.T) {
	c, ca, api := aCluster(), anAuthority(t), newAPI(t)
	r := newTestReconciler(t, api, api)
	for _, x := range []struct {
		made time.Duration
		kept bool
	}{{0, true}, {-operatorTLSLife + time.Hour, true}, {-operatorTLSLife, false}, {-20000 * 24 * time.Hour, false},
		{8 * time.Hour, false}} {
		r.state(c).tls = clusterTLS{}
		before, err := r.clusterTLS(c, ca)
		must(t, err)
		r.state(c).tls.made = r.state(c).tls.made.Add(x.made)
		after, err := r.clusterTLS(c, ca)
		if must(t, err); (before == after) != x.kept {
			t.Errorf("made at a clock that is %s off: kept %t", x.made, before == after)
		}
	}
}

// TestTheOperatorsCertificateIsReplacedBeforeItEnds holds for an operator that looks at its Cluster as rarely as any
// does, and whose clock is hours behind those of the instances.
func TestTheOperatorsCertificateIsReplacedBeforeItEnds(t *testing.T) {
	c, ca, api := aCluster(), anAuthority(t), newAPI(t)
	r := newTestReconciler(t, api, api)
	before, err := r.clusterTLS(c, ca)
	must(t, err)
	leaf, err := x509.ParseCertificate(before.Certificates[0].Certificate[0])
	must(t, err)
	made := r.state(c).tls.made
	replaced := made.Add(operatorTLSLife + time.Hour)
	if r.state(c).tls.isInTime(replaced) {
		t.Error("it is used for longer than it should be")
	}
	if behind := leaf.NotAfter.Sub(replaced); behind < 12*time.Hour || leaf.NotAfter.Sub(made) > 49*time.Hour {
		t.Errorf("it ends %s after it was made and %s after it is replaced", leaf.NotAfter.Sub(made), behind)
	}
	if ahead := made.Sub(leaf.NotBefore); ahead < 365*24*time.Hour {
		t.Errorf("it begins only %s before it is made, and this clock may be ahead", ahead)
	}
}

// TestStreamsEndWithThoseTheySpeakTo: a connection to a Pod that is gone is not
// tried for ever, and what can be a proof is not forgotten.
func TestStreamsEndWithThoseTheySpeakTo(t *testing.T) {
	gone, going, anew := aCluster(), aPod("c-3", "third", "n3"), aPod("c-2", "again", "n2")
	going.Finalizers = []string{"test/keep"}
	api := newAPI(t)
	r, ca := newTestReconciler(t, api, api), anAuthority(t)
	word := core.Report{Boot: "a"}
	for _, instance := range []string{"c-1", "c-2", "c-3"} {
		r.says(instance, word)
	}
	alive := func(instance string) bool {
		st := r.streams.stream("ns", instance)
		return st != nil && !st.isOver()
	}
	silence := func(instance string) {
		if st := r.streams.stream("ns", instance); st != nil {
			st.lose(errors.New("gone"))
		}
	}
	must(t, r.listen(t.Context(), gone, ca))
	if !alive("c-1") || !alive("c-2") || !alive("c-3") {
		t.Error("a manager that can be heard is not listened to any more because its Pod's object is gone")
	}
	silence("c-1")
	silence("c-2")
	silence("c-3")
	must(t, api.Create(t.Context(), going))
	must(t, api.Delete(t.Context(), going))
	must(t, r.listen(t.Context(), gone, ca))
	if !alive("c-1") {
		t.Error("the holder of the promotion is not called any more: its word is a proof")
	}
	if alive("c-2") || alive("c-3") {
		t.Error("somebody is called who is gone")
	}
	if !r.streams.Heard("ns", "c-2").Latest.Known() || r.streams.Heard("ns", "c-3").Latest.Known() {
		t.Error("a member's last word is kept, and nobody else's")
	}
	must(t, api.Create(t.Context(), anew))
	must(t, r.listen(t.Context(), gone, ca))
	if !alive("c-2") || !r.streams.Heard("ns", "c-2").Latest.Known() {
		t.Error("a new Pod of a member is not listened to, or its former word is lost")
	}
}

// TestALagIsKnownOfWhoReceivesAndApplies: what else it says of its lag is old.
func TestALagIsKnownOfWhoReceivesAndApplies(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "c-2"}
	st := &stream{}
	s := &Streams{streams: map[types.NamespacedName]*stream{key: st}}
	follows := core.Replication{IORunning: true, SQLRunning: true, LagSeconds: 1.5}
	stopped := follows
	stopped.SQLRunning = false
	for name, c := range map[string]struct {
		server *core.Server
		known  bool
	}{
		"a replica":     {&core.Server{Replication: &follows}, true},
		"a stopped one": {&core.Server{Replication: &stopped}, false},
		"a primary":     {&core.Server{}, false},
		"nobody":        {nil, false},
	} {
		snap := snapshot(name, time.Second, time.Second)
		snap.Report.Server = c.server
		st.hear(snap, time.Now())
		lag, known := s.Lag("ns", "c-2").Get()
		if known != c.known || known && lag != 1500*time.Millisecond {
			t.Errorf("%s: %s, %t", name, lag, known)
		}
	}
	if s.Lag("ns", "c-9").Known() {
		t.Error("the lag of an instance that nobody heard is known")
	}
}

func TestWhatAStreamRepeatsChangesNothing(t *testing.T) {
	st, now := &stream{}, time.Now()
	says := func(made time.Duration, state core.State, repeats bool) control.Snapshot {
		s := snapshot("a", 0, made)
		s.Report.State, s.Repeats = state, repeats
		return s
	}
	for i, step := range []struct {
		stream bool
		says   control.Snapshot
		want   bool
	}{
		{true, says(1, core.Running, false), true},
		{true, says(2, core.Running, true), false},
		// An answer says something else. What the stream says then is held against it, though
		// the stream says it once more; and so it is where a message of before came in between.
		{false, says(4, core.Stopped, false), true},
		{true, says(3, core.Running, true), false},
		{true, says(5, core.Running, true), true},
		{true, says(6, core.Running, true), false},
	} {
		hear := st.hear
		if step.stream {
			hear = st.hearStream
		}
		if got := hear(step.says, now); got != step.want {
			t.Errorf("step %d may change a decision: %v", i, got)
		}
	}
}

func TestAPositionThatMovesWakesWhoLooksSeldom(t *testing.T) {
	at := func(made time.Duration, executed string) control.Snapshot {
		s := snapshot("a", 0, made)
		s.Report.Server = &core.Server{UUID: "u", Executed: gtid.MustParse(executed)}
		return s
	}
	const before, after = "11111111-1111-4111-8111-111111111111:1-5", "11111111-1111-4111-8111-111111111111:1-6"
	for name, tc := range map[string]struct {
		looked time.Duration
		says   string
		want   bool
	}{
		"looked at a moment ago":               {time.Second, after, false},
		"looked at a while ago":                {core.LookAgain, after, true},
		"looked at a while ago, nothing moved": {core.LookAgain, before, false},
	} {
		t.Run(name, func(t *testing.T) {
			st := &stream{}
			st.hearStream(at(1, before), time.Now())
			st.looked = time.Now().Add(-tc.looked)
			if got := st.hearStream(at(2, tc.says), time.Now()); got != tc.want {
				t.Errorf("it wakes: %v", got)
			}
		})
	}
}

// TestTheStatusIsReadForTheFirstContactOnly: it is read to decide in any case, and need not be twice.
func TestTheStatusIsReadForTheFirstContactOnly(t *testing.T) {
	r, c := operatorOf(t, newFake(t).Build()), aCluster()
	r.says("c-1", core.Report{WritableEpoch: 1, Server: &core.Server{}})
	readable := c.Status.Promotion.RequiredGTID
	for _, step := range []struct {
		set  string
		read bool
	}{{"no set", true}, {readable, true}, {"no set", false}} {
		c.Status.Promotion.RequiredGTID = step.set
		is, err := r.isFirstContact(c)
		if is || (err != nil) != (step.read && step.set != readable) {
			t.Errorf("with the set %q: first contact %t, %v", step.set, is, err)
		}
	}
}

// An operator that starts hears instances one after the other. It waits for all of a healthy cluster,
// once: an instance that is made later holds nobody up.
func TestFirstContactIsMadeOnce(t *testing.T) {
	r := operatorOf(t, newFake(t).Build())
	well := &core.Status{Diagnosis: core.PrimaryHealthy, CurrentPrimary: "c-1", TargetPrimary: "c-1"}
	silent := func(instance string) *stream {
		st := &stream{cluster: clusterKey, since: time.Now(), cancel: func() {},
			client: control.NewClient("127.0.0.1:1", &tls.Config{})}
		r.streams.put(types.NamespacedName{Namespace: "ns", Name: instance}, st)
		return st
	}
	if r.streams.FirstContact(clusterKey, well) {
		t.Error("it waits for nobody")
	}
	r.says("c-1", core.Report{WritableEpoch: 1, Server: &core.Server{}})
	replica := silent("c-2")
	if !r.streams.FirstContact(clusterKey, well) {
		t.Error("it decides before the replica was heard")
	}
	if !replica.lose(errors.New("refused")) {
		t.Error("that the replica does not answer wakes nobody")
	}
	if replica.lose(errors.New("refused")) {
		t.Error("that it does not answer yet wakes each time")
	}
	if r.streams.FirstContact(clusterKey, well) {
		t.Error("it waits, although it is known of all what they say")
	}
	silent("c-3")
	if r.streams.FirstContact(clusterKey, well) {
		t.Error("it waits for an instance that was made later")
	}
	r.streams.ForgetCluster(clusterKey)
	silent("c-1")
	if !r.streams.FirstContact(clusterKey, well) {
		t.Error("another Cluster of the name counts as met")
	}
}

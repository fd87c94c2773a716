package observation_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/layout"
	"cnmsql.co/internal/observation"
	"cnmsql.co/internal/resources"
)

func aPod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "c-1", UID: "first"}, Spec: corev1.PodSpec{NodeName: "n1"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
			{Name: layout.Container, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}}
}

func TestOnlyAPodThatIsOverHasEnded(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.Now()}}
	for name, c := range map[string]struct {
		phase    corev1.PodPhase
		state    corev1.ContainerState
		deleting bool
		want     bool
	}{
		"it runs": {corev1.PodRunning, running, false, false},
		"its container ended, and may be started again": {corev1.PodRunning,
			ended, false, false},
		"its container ended before the deletion, and may have been started again": {corev1.PodRunning, ended, true,
			false},
		"all has ended":      {corev1.PodFailed, ended, true, true},
		"all has ended well": {corev1.PodSucceeded, ended, false, true},
		"somebody called it over, and not the kubelet": {corev1.PodFailed, running, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := aPod()
			pod.Status.Phase, pod.Status.ContainerStatuses[0].State = c.phase, c.state
			if c.deleting {
				pod.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			}
			if got := observation.HasEnded(pod); got != c.want {
				t.Errorf("hasEnded: %t", got)
			}
		})
	}
}

// A kubelet that was restarted may not admit a Pod that it runs, and says so before it
// kills the containers.
func TestARejectedPodIsReplacedAndHasNotEnded(t *testing.T) {
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
	for name, statuses := range map[string][]corev1.ContainerStatus{
		"no word about its containers": nil,
		"only about others": {{Name: "sidecar",
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}},
		"it was being made": {{Name: layout.Container, State: waiting}},
		"no state":          {{Name: layout.Container}},
	} {
		pod := aPod()
		pod.Status.Phase, pod.Status.Reason, pod.Status.ContainerStatuses = corev1.PodFailed, "NodeAffinity", statuses
		got := observation.PodFacts(pod, observation.Wanted{})
		if got.Terminated || !got.Rejected || got.NeverStarted {
			t.Errorf("%s: terminated %t, rejected %t, never started %t", name, got.Terminated,
				got.Rejected, got.NeverStarted)
		}
	}
	pod := aPod()
	if got := observation.PodFacts(pod, observation.Wanted{}); got.Rejected {
		t.Error("a Pod that runs is rejected")
	}
}

func TestAPodThatIsBeingDeletedSaysHowLongItMayTake(t *testing.T) {
	pod, grace := aPod(), int64(7)
	pod.DeletionGracePeriodSeconds = &grace
	if got := observation.PodFacts(pod, observation.Wanted{}); got.Terminating || got.Grace != 0 {
		t.Errorf("not deleted: %+v", got)
	}
	pod.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	if got := observation.PodFacts(pod, observation.Wanted{}); !got.Terminating || got.Grace != 7*time.Second {
		t.Errorf("deleted: %+v", got)
	}
}

// The image that a manager was copied from makes a Pod out of date, unless managers are
// replaced in place.
func TestAPodIsOutOfDateByItsSpecOrByItsManager(t *testing.T) {
	pod := aPod()
	pod.Annotations = map[string]string{v1alpha1.AnnotationPodSpecHash: "h",
		v1alpha1.AnnotationPodInputHash: "i"}
	pod.Spec.InitContainers = []corev1.Container{{Name: "install", Image: "cnmsql:1"}}
	wanted := func(spec, inputs, installer string, inPlace bool) observation.Wanted {
		made := resources.Made{Spec: spec, Inputs: inputs}
		return observation.Wanted{Made: made, Installer: installer, InPlace: inPlace}
	}
	for _, c := range []struct {
		wanted            observation.Wanted
		current, oldImage bool
	}{
		{wanted("h", "i", "cnmsql:1", false), true, false},
		{wanted("h", "i", "cnmsql:2", false), false, true},
		{wanted("h", "", "cnmsql:2", true), true, true},
		{wanted("other", "", "cnmsql:1", true), false, false},
		// another release builds it otherwise from the same
		{wanted("other", "i", "cnmsql:2", true), true, true},
		{wanted("other", "i", "cnmsql:2", false), false, true},
		{wanted("other", "j", "cnmsql:2", true), false, true},
	} {
		if got := observation.PodFacts(pod, c.wanted); got.Current != c.current || got.OldImage != c.oldImage {
			t.Errorf("%+v: current %t, of an old image %t", c.wanted, got.Current, got.OldImage)
		}
	}
	pod.Annotations[v1alpha1.AnnotationManagerImage] = "cnmsql:2" // which admission sent to a mirror
	if got := observation.PodFacts(pod, wanted("h", "", "cnmsql:2", false)); !got.Current {
		t.Error("a Pod whose images admission rewrites is out of date for ever")
	}
	delete(pod.Annotations, v1alpha1.AnnotationPodInputHash)
	if got := observation.PodFacts(pod, wanted("other", "", "cnmsql:2", true)); got.Current {
		t.Error("a Pod that does not tell what it was made from is taken for one of another release")
	}
}

// A Pod that may have vouched when the failover began has ended when its node has.
func TestAWitnessEndsWithItsNode(t *testing.T) {
	c := aCluster()
	c.Status.Operation = &v1alpha1.OperationStatus{Kind: "Failover", Step: "Prove",
		Witnesses: []string{"c-2/old/n-2", "c-3/other/n-3"}}
	out := &corev1.Node{}
	out.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService}}
	for about, nodes := range map[string]map[string]*corev1.Node{"gone": {}, "out of service": {"n-2": out},
		"there": {"n-2": {}}, "not read": nil} {
		var want []string
		if about == "gone" || about == "out of service" {
			want = []string{"old"}
		}
		if got := observation.Instance(c, "c-2", &observation.Objects{Nodes: nodes},
			observation.Wanted{}).EndedPods; !slices.Equal(got, want) {
			t.Errorf("its node is %s: ended are %v", about, got)
		}
	}
}

// TestANodeIsLostWhenItsKubeletDoesNotSayThatItIsReady holds what is said of whoever does not answer from there.
func TestANodeIsLostWhenItsKubeletDoesNotSayThatItIsReady(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n-2"}}
	for want, nodes := range map[string]map[string]*corev1.Node{
		"no answer":                            {"n-2": readiness(corev1.ConditionTrue)},
		"no answer: its node n-2 is not ready": {"n-2": readiness(corev1.ConditionUnknown)},
		"no answer: its node n-2 is gone":      {},
	} {
		in := observation.Instance(aCluster(), "c-2", &observation.Objects{Nodes: nodes,
			Pods: map[string]*corev1.Pod{"c-2": pod}}, observation.Wanted{})
		if got := in.NoAnswer(); got != want || in.IsOnLostNode() != (want != "no answer") {
			t.Errorf("want %q, got %q", want, got)
		}
	}
}

func readiness(is corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: is}}}}
}

func aCluster() *v1alpha1.Cluster {
	at := metav1.NewMicroTime(time.Date(2026, 3, 1, 3, 0, 0, 1000, time.UTC))
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	c.Status = v1alpha1.ClusterStatus{Blocked: &v1alpha1.Notice{Reason: "NoProof", Message: "m", Since: &at},
		Notices: []v1alpha1.Notice{{Reason: "ForeignPod", Subject: "p", Message: "n", Since: &at},
			{Reason: "ActionFailed"}},
		Phase: "Healthy", PhaseReason: "c-1 takes writes", Diagnosis: "PrimaryHealthy", CurrentPrimary: "c-1",
		CurrentPrimaryTimestamp: &at,
		TargetPrimary:           "c-1", TargetPrimaryTimestamp: &v1alpha1.Moment{MicroTime: at},
		PrimaryEpoch: 7, EstablishedAt: &at,
		LastFailoverTimestamp: &at, PrimaryFailingSince: &at,
		InstanceNames: []string{"c-1", "c-2", "c-10"}, Members: []string{"c-1", "c-2"}, Instances: 3,
		LatestGeneratedNode: 10, ReadyInstances: 2,
		DivergedInstances: []string{"c-2"}, ReplicationBrokenInstances: []string{"c-2"},
		FencedInstances: []string{"c-10"},
		Operation: &v1alpha1.OperationStatus{Kind: "Failover", Step: "Prove", From: "c-1", To: "c-2",
			Reason: "MysqldDown", StartedAt: &at, Deadline: &at},
		Promotion: &v1alpha1.PromotionStatus{Epoch: 7, Instance: "c-1", Proof: "QuorumCut", Evidence: "e", From: "c-2",
			RequiredGTID: "11111111-1111-1111-1111-111111111111:1-9",
			RequiredAcks: 1, GrantedAt: &at, PodUID: "first", Node: "n1", WritableSince: &at, LosslessSince: 3, Size: 3,
			Leased: true, Pods: []string{"first"}, EndedPods: []string{"old"}, AwaitedPods: 2, NoWritesBelow: 8}}
	return c
}

func TestAStatusThatIsReadAndWrittenStaysAsItWas(t *testing.T) {
	for name, c := range map[string]*v1alpha1.Cluster{"async": aCluster(), "group": aGroup()} {
		s, err := observation.StatusFrom(&c.Status)
		if err != nil {
			t.Fatal(name, err)
		}
		var back v1alpha1.ClusterStatus
		observation.WriteStatus(&back, s)
		if !apiequality.Semantic.DeepEqual(c.Status, back) {
			t.Errorf("%s\nwas %+v %+v\nis  %+v %+v", name, c.Status, c.Status.GroupReplication, back,
				back.GroupReplication)
		}
	}
}

func TestWhatWasNotReadIsUnknown(t *testing.T) {
	c := aCluster()
	in := observation.Instance(c, "c-1", &observation.Objects{}, observation.Wanted{})
	if in.Pod.Known() || in.Volume.Known() || in.Node.Known() {
		t.Errorf("known without having been read: %+v", in)
	}
	in = observation.Instance(c, "c-1", &observation.Objects{Pods: map[string]*corev1.Pod{},
		Volumes: map[string]*corev1.PersistentVolumeClaim{}, Nodes: map[string]*corev1.Node{}}, observation.Wanted{})
	pod, podKnown := in.Pod.Get()
	node, nodeKnown := in.Node.Get()
	if !podKnown || pod.Exists || !nodeKnown || node.Exists || !in.Volume.Known() {
		t.Errorf("what was read and is not there is a fact: %+v", in)
	}
}

func TestInstancesAreInTheOrderOfTheirNumbers(t *testing.T) {
	c := aCluster()
	objs := &observation.Objects{Pods: map[string]*corev1.Pod{"c-3": aPod(), "c-2": aPod(),
		"other-1": aPod(), "c-01": aPod()}}
	got := observation.InstanceNames(c, objs)
	if want := []string{"c-1", "c-2", "c-3", "c-10"}; !apiequality.Semantic.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Labels, and owners too, are copied by whoever copies a manifest.
func TestOnlyWhatTheClusterControlsByItsNameIsAnInstances(t *testing.T) {
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "mine"}}
	former := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "former"}}
	pod := func(name, label string, owner *v1alpha1.Cluster) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelCluster: "c",
			v1alpha1.LabelRole: v1alpha1.RoleReplica}}}
		if label != "" {
			p.Labels[v1alpha1.LabelInstance] = label
		}
		if owner != nil {
			p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner,
				v1alpha1.GroupVersion.WithKind("Cluster"))}
		}
		return p
	}
	going := pod("z-going", "c-1", nil)
	going.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	beside := pod("beside", "", nil)
	beside.Labels = map[string]string{v1alpha1.LabelCluster: "c"}
	var objs observation.Objects
	objs.SetPods(c, []corev1.Pod{
		pod("c-1", "c-1", c), pod("c-2", "", c), // the second lost a label
		pod("z-copy", "c-1", c), pod("a-copy", "c-1", nil), pod("c-3", "c-3", former), pod("c-4", "c-1", c),
		pod("c-5", "c-5", nil), going, beside,
	})
	if len(objs.Pods) != 2 || objs.Pods["c-1"].Name != "c-1" || objs.Pods["c-2"].Name != "c-2" {
		t.Errorf("taken for instances: %v", objs.Pods)
	}
	if want := []string{"a-copy", "c-3", "c-4", "c-5", "z-copy"}; !slices.Equal(objs.ForeignPods, want) {
		t.Errorf("foreign are %v, want %v", objs.ForeignPods, want)
	}
	objs.SetVolumes(c, []corev1.PersistentVolumeClaim{{ObjectMeta: pod("c-1", "c-1", c).ObjectMeta},
		{ObjectMeta: pod("data-c-1", "c-1", nil).ObjectMeta}})
	if len(objs.Volumes) != 1 || objs.Volumes["c-1"] == nil ||
		!slices.Equal(objs.ForeignVolumes, []string{"data-c-1"}) {
		t.Errorf("volumes %v, foreign %v", objs.Volumes, objs.ForeignVolumes)
	}
	o, err := observation.Cluster(c, &objs)
	if err != nil || len(o.ForeignPods) != 5 || len(o.ForeignVolumes) != 1 {
		t.Errorf("told are %v, %v: %v", o.ForeignPods, o.ForeignVolumes, err)
	}
}

// What others injected beside mysqld does not make a Pod one that does not run.
func TestAPodRunsWhenMysqldDoes(t *testing.T) {
	crashes := corev1.ContainerStatus{Name: "log-shipper", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}
	mysqld := corev1.ContainerStatus{Name: layout.Container}
	pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{crashes, mysqld}}}
	if observation.Waiting(pod) == nil {
		t.Error("a container that crashes, and mysqld that does not run: nothing is told")
	}
	pod.Status.ContainerStatuses[1].State.Running = &corev1.ContainerStateRunning{}
	if why := observation.Waiting(pod); why != nil {
		t.Errorf("mysqld runs, and the Pod is said not to: %s", why)
	}
}

func TestWhatIsBeingDeletedNamesWhoHoldsIt(t *testing.T) {
	held := metav1.ObjectMeta{Finalizers: []string{"example.com/a", "example.com/b"}}
	going := held
	going.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	const both = "example.com/a, example.com/b"
	for _, tc := range []struct {
		name  string
		pod   *corev1.Pod
		claim *corev1.PersistentVolumeClaim
		want  string
	}{
		{"nobody deletes them", &corev1.Pod{ObjectMeta: held}, &corev1.PersistentVolumeClaim{ObjectMeta: held}, ""},
		{"the Pod", &corev1.Pod{ObjectMeta: going}, &corev1.PersistentVolumeClaim{}, both},
		{"the claim", nil, &corev1.PersistentVolumeClaim{ObjectMeta: going}, both},
		{"the claim, which waits for its Pod", &corev1.Pod{}, &corev1.PersistentVolumeClaim{ObjectMeta: going}, ""},
	} {
		objs := observation.Objects{Pods: map[string]*corev1.Pod{"c-1": tc.pod},
			Volumes: map[string]*corev1.PersistentVolumeClaim{"c-1": tc.claim}}
		if got := observation.Instance(&v1alpha1.Cluster{}, "c-1", &objs, observation.Wanted{}).HeldBy; got != tc.want {
			t.Errorf("%s: held by %q", tc.name, got)
		}
	}
}

// What is written to take a request back asks for nothing.
func TestAnAnnotationThatSaysNoAsksForNothing(t *testing.T) {
	for value, want := range map[string]bool{"true": true, "": true, "on": true, "false": false, "off": false} {
		pod := aPod()
		pod.Annotations = map[string]string{v1alpha1.AnnotationDemote: value, v1alpha1.AnnotationFencing: value}
		if got := observation.PodFacts(pod, observation.Wanted{}); got.DemoteRequested != want ||
			got.FencingRequested != want {
			t.Errorf("%q: demote %t, fence %t", value, got.DemoteRequested, got.FencingRequested)
		}
	}
}

// TestAServiceIsTheClustersIfItControlsIt whatever its labels are copied from.
func TestAServiceIsTheClustersIfItControlsIt(t *testing.T) {
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "mine"}}
	former := c.DeepCopy()
	former.UID = "former"
	named := func(name string, of *v1alpha1.Cluster) corev1.Service {
		s := resources.ReadWriteService(of, "")
		s.Name, s.UID = name, types.UID("uid-of-"+name)
		return *s
	}
	going := named("c-reports", c)
	going.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	objs := observation.Objects{Services: []corev1.Service{named("c-rw", c), named("c-orders", c), going,
		named("c-theirs", former), *resources.InstanceService(c, "c-1")}}
	o, err := observation.Cluster(c, &objs)
	want := []core.Service{{Name: "c-rw", UID: "uid-of-c-rw", Wanted: true}, {Name: "c-orders", UID: "uid-of-c-orders"},
		{Name: "c-reports", UID: "uid-of-c-reports", Deleting: true}}
	if err != nil || !slices.Equal(o.Services, want) {
		t.Errorf("its Services are %+v: %v", o.Services, err)
	}
}

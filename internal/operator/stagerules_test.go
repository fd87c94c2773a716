package operator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	coordination "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
)

// rules are what must be so after each look, whichever call failed. They remember what was before.
type rules struct {
	epoch int64
	// promoted is who may take writes, and former who might before.
	promoted, former string
	// wasMade tells whether the status said that the group was made.
	wasMade bool
	// loses are the instances whose data may be deleted.
	loses []string
	// named are all instances that the status has ever named.
	named map[string]bool
	// others are the objects of others, as text.
	others []string
}

func newRules(s *stage) rules {
	r := rules{named: map[string]bool{}, others: s.others(s.all())}
	r.note(s)
	return r
}

func (r *rules) note(s *stage) {
	if s.c == nil {
		return
	}
	if is := s.promoted(); is != r.promoted {
		r.former, r.promoted = r.promoted, is
	}
	r.epoch, r.wasMade = s.c.Status.PrimaryEpoch, s.saysMade()
	for _, name := range s.c.Status.InstanceNames {
		r.named[name] = true
	}
}

// check holds what there is against the rules.
func (r *rules) check(s *stage) {
	s.Helper()
	all := s.all()
	if now := s.others(all); !slices.Equal(now, r.others) {
		s.Errorf("objects of others were changed:\n%s\nare now\n%s", strings.Join(r.others, "\n"),
			strings.Join(now, "\n"))
	}
	r.checkData(s, all)
	if s.c == nil {
		return
	}
	switch epoch, is := s.c.Status.PrimaryEpoch, s.promoted(); {
	case epoch < r.epoch:
		s.Errorf("the epoch went back from %d to %d", r.epoch, epoch)
	case is != r.promoted && epoch <= r.epoch:
		s.Errorf("%q is promoted after %q in epoch %d, and there is no later one", is, r.promoted, epoch)
	case r.wasMade && !s.saysMade():
		s.Errorf("the status says that the group was never made, and it was")
	}
	r.note(s)
	s.group.check(s)
	for _, obj := range all {
		r.checkObject(s, obj)
	}
}

// checkData wants each claim with data to stay, unless its instance may lose them.
func (r *rules) checkData(s *stage, all []client.Object) {
	s.Helper()
	for claim, says := range s.disks {
		if says.Data == core.DataPopulated && !slices.Contains(r.loses, says.Instance) &&
			!slices.ContainsFunc(all, func(obj client.Object) bool {
				return obj.GetUID() == claim && obj.GetDeletionTimestamp() == nil
			}) {
			s.Errorf("the volume claim of %s, which has data, is deleted", says.Instance)
		}
	}
}

func (r *rules) checkObject(s *stage, obj client.Object) {
	s.Helper()
	switch obj := obj.(type) {
	case *corev1.Pod, *corev1.PersistentVolumeClaim:
		if resources.Belongs(s.c, obj) && !r.named[obj.GetName()] {
			s.Errorf("%s was made, and the status does not name it: %v", nameOf(obj), s.c.Status.InstanceNames)
		}
	case *corev1.Service:
		if !resources.Belongs(s.c, obj) || !resources.IsRoleService(obj) || !resources.LeadsToPrimary(obj) {
			return
		}
		switch to := resources.RoutedTo(obj); {
		case to == "", to == r.promoted, to == s.group.primary: // the group has elected it, before the status tells
		case to == r.former && (s.c.Status.Operation != nil || s.failedNow): // it is under way
		default:
			s.Errorf("the Service %s leads writes to %s, and %s is promoted", obj.Name, to, r.promoted)
		}
	}
}

// others are those of the objects that are of others, as text.
func (s *stage) others(all []client.Object) (out []string) {
	s.Helper()
	for _, obj := range all {
		if obj.GetAnnotations()["of"] != "another" {
			continue
		}
		text, err := json.Marshal(obj)
		must(s.T, err)
		out = append(out, nameOf(obj)+" "+string(text))
	}
	slices.Sort(out)
	return out
}

func nameOf(obj client.Object) string {
	_, kind, _ := strings.Cut(fmt.Sprintf("%T", obj), ".")
	return kind + " " + obj.GetName()
}

// anothers are objects of another Cluster whose name begins alike, of one that had the same name, and of nobody.
func anothers() []client.Object {
	owner := func(name, uid string) []metav1.OwnerReference {
		c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}}
		return []metav1.OwnerReference{*metav1.NewControllerRef(c, v1alpha1.GroupVersion.WithKind("Cluster"))}
	}
	about := func(name, cluster, uid string) metav1.ObjectMeta {
		m := metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-of-" + name),
			Annotations: map[string]string{"of": "another"}}
		if cluster != "" {
			m.Labels = map[string]string{v1alpha1.LabelCluster: cluster, v1alpha1.LabelInstance: name}
			m.OwnerReferences = owner(cluster, uid)
		}
		return m
	}
	old := resources.ReadWriteService(aCluster(), "c-9")
	old.ObjectMeta.Name, old.OwnerReferences = "c-old", owner("c", "former")
	old.UID, old.Annotations = "uid-of-c-old", map[string]string{"of": "another"}
	return []client.Object{old,
		&corev1.Pod{ObjectMeta: about("c-1-1", "c-1", "another")},
		&corev1.PersistentVolumeClaim{ObjectMeta: about("c-1-1", "c-1", "another")},
		&corev1.Service{ObjectMeta: about("c-1-rw", "c-1", "another")},
		&corev1.Secret{ObjectMeta: about("c-1-ca", "c-1", "another")},
		&coordination.Lease{ObjectMeta: about("c-1-primary", "c-1", "another")},
		&corev1.PersistentVolumeClaim{ObjectMeta: about("c-9", "", "")},
		&corev1.Pod{ObjectMeta: about("c-9", "", "")},
	}
}

// teller is a recorder of events: none may tell of what is not written down.
type teller struct{ s *stage }

func (t teller) Eventf(about, _ runtime.Object, _, reason, _, note string, args ...any) {
	c, is := about.(*v1alpha1.Cluster)
	now := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	if !is || !t.s.get(now) {
		t.s.Errorf("%s is told of what there is none: %s", reason, fmt.Sprintf(note, args...))
		return
	}
	if told, written := essence(c), essence(now); told != written {
		t.s.Errorf("%s is told (%s) of\n%s, and written down is\n%s", reason, fmt.Sprintf(note, args...), told, written)
	}
}

// essence is what of a status decides.
func essence(c *v1alpha1.Cluster) string {
	s := c.Status
	out := fmt.Sprintf("%s, epoch %d, of %v, primary %s, wished %s", s.Phase, s.PrimaryEpoch, s.InstanceNames,
		s.CurrentPrimary, s.TargetPrimary)
	if p := s.Promotion; p != nil {
		out += fmt.Sprintf(", promoted %s in epoch %d", p.Instance, p.Epoch)
	}
	if op := s.Operation; op != nil {
		out += fmt.Sprintf(", %s %s from %s to %s", op.Kind, op.Step, op.From, op.To)
	}
	return out
}

// outcome is how a story has ended: all there is, in words.
func (s *stage) outcome() (out []string) {
	s.Helper()
	for _, obj := range s.all() {
		text := nameOf(obj)
		switch obj := obj.(type) {
		case *corev1.Pod:
			text += fmt.Sprintf(": role %s, routable %s", obj.Labels[v1alpha1.LabelRole],
				obj.Labels[v1alpha1.LabelRoutable])
		case *corev1.PersistentVolumeClaim:
			text += fmt.Sprintf(": %s, kept %t, with %d owners, deleted %t", obj.Spec.Resources.Requests.Storage(),
				resources.IsKept(obj), len(obj.OwnerReferences), obj.DeletionTimestamp != nil)
		case *corev1.Service:
			text += fmt.Sprintf(": %v, %s", obj.Spec.Selector, cmp.Or(string(obj.Spec.SessionAffinity), "None"))
		case *corev1.Secret:
			text += fmt.Sprintf(": %v", slices.Sorted(maps.Keys(obj.Data)))
		case *coordination.Lease:
			text += fmt.Sprintf(": of %v", obj.Annotations)
		}
		out = append(out, text)
	}
	if s.c != nil {
		c := s.c.DeepCopy()
		c.Status.PrimaryEpoch -= s.askedAgain
		out = append(out, fmt.Sprintf("Cluster: %s, asked for %v, generation %d of %d observed", essence(c),
			c.Annotations, c.Status.ObservedGeneration, c.Generation))
	}
	slices.Sort(out)
	return out
}

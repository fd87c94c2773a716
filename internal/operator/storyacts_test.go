package operator

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/pki"
	"cnmsql.co/internal/resources"
)

// kubernetes is what a Cluster needs that the operator does not make, and the Cluster.
func kubernetes(c *v1alpha1.Cluster) []client.Object {
	return []client.Object{c,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Finalizers: []string{"kubernetes"}}},
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast",
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}}}}
}

// nothing happens, but what is to be done already.
func nothing(*stage) {}

// passes is time that passes.
func passes(d time.Duration) func(*stage) { return func(*stage) { time.Sleep(d) } }

// edits is a user who changes the Cluster.
func edits(do func(*v1alpha1.Cluster)) func(*stage) { return func(s *stage) { s.change(do) } }

func annotates(key, value string) func(*stage) {
	return edits(func(c *v1alpha1.Cluster) { metav1.SetMetaDataAnnotation(&c.ObjectMeta, key, value) })
}

// wishes is a user who wants another primary.
func wishes(primary string) func(*stage) {
	return func(s *stage) {
		s.wish(func(status *v1alpha1.ClusterStatus) { status.TargetPrimary = primary })
	}
}

func scales(by int32, volumes v1alpha1.VolumeRetention) func(*stage) {
	return edits(func(c *v1alpha1.Cluster) {
		c.Spec.Instances += by
		c.Spec.Storage.WhenScaled = volumes
	})
}

func withVolumes(when v1alpha1.VolumeRetention) func(*v1alpha1.Cluster) {
	return func(c *v1alpha1.Cluster) { c.Spec.Storage.WhenDeleted = when }
}

// isDeleted is a user who changes what becomes of the volumes, and deletes the Cluster at once. It waits for somebody.
func isDeleted(volumes v1alpha1.VolumeRetention) func(*stage) {
	return func(s *stage) {
		s.change(func(c *v1alpha1.Cluster) {
			withVolumes(volumes)(c)
			c.Finalizers = []string{v1alpha1.FinalizerStoredArchive}
		})
		s.delete(s.c)
	}
}

// losesNamespace is a user who deletes the namespace: Kubernetes stops the Pods before all else.
func losesNamespace(s *stage) {
	s.delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	for _, pod := range s.pods {
		pod.Finalizers = []string{"test/stops"}
		s.update(pod)
		s.delete(pod)
	}
}

// losesNode is a node that is gone, and the instance's Pod with it.
func losesNode(instance string) func(*stage) {
	return func(s *stage) {
		pod := s.pods[instance]
		s.delete(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.NodeName}})
		s.delete(pod)
	}
}

// only, theLast and everybody are whose data a story may delete.
func only(names ...string) func(*stage) []string { return func(*stage) []string { return names } }
func theLast(s *stage) []string                  { return []string{s.before.last()} }
func everybody(s *stage) []string                { return slices.Sorted(maps.Keys(s.before.claims)) }

func addServices(c *v1alpha1.Cluster, additional ...v1alpha1.AdditionalService) {
	c.Spec.Managed = &v1alpha1.ManagedSpec{Services: &v1alpha1.ManagedServices{Additional: additional}}
}

// sticky is a Service that leads a client to the same instance each time.
func sticky(s v1alpha1.AdditionalService) v1alpha1.AdditionalService {
	s.ServiceTemplate = &v1alpha1.ServiceTemplate{Spec: v1alpha1.ServiceTemplateSpec{
		SessionAffinity: corev1.ServiceAffinityClientIP}}
	return s
}

// now is what is held against what there is later.
func (s *stage) now() moment {
	s.Helper()
	m := moment{claims: map[string]types.UID{}, authority: s.authority()}
	for _, name := range s.c.Status.InstanceNames {
		m.claims[name] = s.uidOf(name)
	}
	return m
}

// last is the instance with the highest ordinal that there was, and volumes are the claims of all.
func (m moment) last() string { return fmt.Sprintf("c-%d", len(m.claims)) }

func (m moment) volumes() (out []string) {
	for _, name := range slices.Sorted(maps.Keys(m.claims)) {
		out = append(out, "PersistentVolumeClaim "+name)
	}
	return out
}

// authority is what the Secret of the authority holds; nothing when there is none.
func (s *stage) authority() pki.Kept {
	s.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: resources.Names("c").CASecret()}}
	s.get(secret)
	return resources.KeptOf(secret.Data)
}

func (s *stage) expect(what string, is bool) {
	s.Helper()
	if !is {
		s.Errorf("it is not so that %s", what)
	}
}

// expectPrimary wants an instance to take writes, in so many epochs after the first, and all clients to be led to it,
// and nothing more to be done.
func (s *stage) expectPrimary(name string, later int64) {
	s.Helper()
	status, epoch := s.c.Status, s.replicates.epoch+later+s.askedAgain
	if s.promoted() != name || status.CurrentPrimary != name || status.PrimaryEpoch != epoch ||
		status.Phase != string(core.PhaseHealthy) {
		s.Errorf("%s is not the primary in epoch %d: %s: %s", name, epoch, essence(s.c), status.PhaseReason)
	}
	for service, to := range led(s.T, s.server.raw) {
		isForWrites := service == "c-rw" || service == "c-orders"
		if isForWrites && to != name {
			s.Errorf("the Service %s leads writes to %q", service, to)
		}
	}
	for instance, pod := range s.pods {
		role := v1alpha1.RoleReplica
		if instance == name {
			role = v1alpha1.RolePrimary
		}
		if pod.Labels[v1alpha1.LabelRole] != role || pod.Labels[v1alpha1.LabelRoutable] != "true" {
			s.Errorf("the Pod %s has the labels %v", instance, pod.Labels)
		}
	}
	if len(s.pods) != len(status.InstanceNames) || len(s.pods) != int(s.c.Spec.Instances) {
		s.Errorf("there are %d Pods, of %v", len(s.pods), status.InstanceNames)
	}
	s.group.expectWhole(s, name)
}

// expectOnly wants nothing to be left of an instance but what is named.
func (s *stage) expectOnly(instance string, left ...string) {
	s.Helper()
	for _, obj := range s.all() {
		isOf := obj.GetName() == instance || obj.GetName() == resources.TLSSecret(instance)
		if is := nameOf(obj); isOf && !slices.Contains(left, is) {
			s.Errorf("%s is left", is)
		}
	}
}

// expectGone wants nothing to be left of the Cluster but what is named.
func (s *stage) expectGone(left ...string) {
	s.Helper()
	var are []string
	for _, obj := range s.all() {
		if obj.GetAnnotations()["of"] != "another" {
			are = append(are, nameOf(obj))
		}
	}
	if slices.Sort(are); s.c != nil || !slices.Equal(are, left) {
		s.Errorf("there is still the Cluster (%t), and %v", s.c != nil, are)
	}
}

// expectCertificates wants each instance to have a certificate that is good for long, of the present authority.
func (s *stage) expectCertificates() {
	s.Helper()
	for _, name := range s.c.Status.InstanceNames {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: resources.TLSSecret(name)}}
		s.get(secret)
		b := resources.BundleOf(secret.Data)
		if pki.Shown(pki.Bundle{CA: s.authority().Cert, Cert: b.Cert, Key: b.Key}, time.Now().AddDate(0, 3, 0)) == nil {
			s.Errorf("the certificate of %s is not good for three months", name)
		}
	}
}

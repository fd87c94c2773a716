package resources

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"cnmsql.co/api/v1alpha1"
)

func aBackupOf(c *v1alpha1.Cluster) *v1alpha1.Backup {
	b := &v1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Name: "monday", Namespace: c.Namespace, UID: "u"}}
	b.Spec.Cluster.Name = c.Name
	return b
}

// aTemplate says something of all that a JobTemplate can.
func aTemplate() *v1alpha1.JobTemplate {
	return &v1alpha1.JobTemplate{
		Labels:       map[string]v1alpha1.LabelValue{"team": "shop", v1alpha1.LabelBackup: "mine"},
		Annotations:  map[string]v1alpha1.AnnotationValue{"a": "b"},
		NodeSelector: map[string]string{"disk": "none"},
		Tolerations:  []corev1.Toleration{{Key: "backups", Operator: corev1.TolerationOpExists}},
		Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 7}}}},
		PriorityClassName: "low",
		Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")}},
		TTL: &metav1.Duration{Duration: time.Hour},
	}
}

// TestTheJobOfABackupIsNoInstance, and has what a quota asks for.
func TestTheJobOfABackupIsNoInstance(t *testing.T) {
	c := cluster(t, "minimal")
	pod := BackupJob(c, aBackupOf(c), "cnmsql:v1").Spec.Template
	if !labels.SelectorFromSet(map[string]string{labelInstance: c.Name, labelComponent: componentBackup}).
		Matches(labels.Set(pod.Labels)) {
		t.Errorf("a NetworkPolicy cannot select it by %v", pod.Labels)
	}
	instances := labels.SelectorFromSet(InstanceLabels(c))
	if _, is := pod.Labels[v1alpha1.LabelCluster]; is || instances.Matches(labels.Set(pod.Labels)) {
		t.Errorf("it is taken for an instance by %v", pod.Labels)
	}
}

// An instance would have to give way to a Job that requests more of the CPU than it.
func TestTheJobOfABackupRequestsNoMoreCPUThanAnInstance(t *testing.T) {
	for _, of := range []struct{ requests, limits, job string }{
		{"", "", "0"}, {"50m", "", "50m"}, {"1", "2", "100m"}, {"", "2", "100m"}, {"", "40m", "40m"}, {"0", "2", "0"},
	} {
		c := cluster(t, "minimal")
		c.Spec.Resources = corev1.ResourceRequirements{Requests: cpuOf(of.requests), Limits: cpuOf(of.limits)}
		has := BackupJob(c, aBackupOf(c), "cnmsql:v1").Spec.Template.Spec.Containers[0].Resources.Requests
		if has.Cpu().String() != of.job || has.Memory().String() != "128Mi" {
			t.Errorf("beside an instance with %q and at most %q it requests %v", of.requests, of.limits, has)
		}
	}
}

func cpuOf(text string) corev1.ResourceList {
	if text == "" {
		return nil
	}
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(text)}
}

func TestAJobTemplateReachesTheJobOfABackup(t *testing.T) {
	c, want := cluster(t, "minimal"), aTemplate()
	b := aBackupOf(c)
	b.Spec.JobTemplate = aTemplate()
	job := BackupJob(c, b, "cnmsql:v1")
	pod := job.Spec.Template.Spec
	has := job.Spec.Template.ObjectMeta
	got := &v1alpha1.JobTemplate{Labels: values[v1alpha1.LabelValue](has.Labels),
		Annotations:  values[v1alpha1.AnnotationValue](has.Annotations),
		NodeSelector: pod.NodeSelector, Tolerations: pod.Tolerations, Affinity: pod.Affinity,
		PriorityClassName: pod.PriorityClassName, Resources: pod.Containers[0].Resources,
		TTL: &metav1.Duration{Duration: time.Duration(*job.Spec.TTLSecondsAfterFinished) * time.Second}}
	want.Labels[v1alpha1.LabelBackup] = "monday" // whose Pod it is is not for the template to say
	for key, value := range jobPodLabels(c) {
		want.Labels[key] = v1alpha1.LabelValue(value)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the Job has another template (-wanted +got):\n%s", diff)
	}
	if len(b.Spec.JobTemplate.Labels) != 2 || b.Spec.JobTemplate.Labels[v1alpha1.LabelBackup] != "mine" {
		t.Errorf("the Backup's own labels became %v", b.Spec.JobTemplate.Labels)
	}
}

func values[Text ~string](of map[string]string) map[string]Text {
	out := map[string]Text{}
	for key, value := range of {
		out[key] = Text(value)
	}
	return out
}

// TestAJobIsMadeByTheNextTemplate: a Backup's own one counts as a whole, before that of its Cluster.
func TestAJobIsMadeByTheNextTemplate(t *testing.T) {
	of := func(seconds int) *v1alpha1.JobTemplate {
		return &v1alpha1.JobTemplate{TTL: &metav1.Duration{Duration: time.Duration(seconds) * time.Second}}
	}
	for name, tc := range map[string]struct {
		cluster, backup *v1alpha1.JobTemplate
		ttl             int32
		priority        string
	}{
		"none":                {ttl: 24 * 60 * 60},
		"the Cluster's":       {cluster: aTemplate(), ttl: 60 * 60, priority: "low"},
		"the Backup's":        {cluster: aTemplate(), backup: of(7), ttl: 7},
		"the Backup's, empty": {cluster: aTemplate(), backup: &v1alpha1.JobTemplate{}, ttl: 24 * 60 * 60},
		"at once":             {backup: of(0), ttl: 0},
		"before its end":      {backup: of(-7), ttl: 0},
	} {
		c := cluster(t, "minimal")
		c.Spec.Backup = &v1alpha1.BackupDefaults{JobTemplate: tc.cluster}
		b := aBackupOf(c)
		b.Spec.JobTemplate = tc.backup
		job := BackupJob(c, b, "cnmsql:v1")
		ttl, priority := *job.Spec.TTLSecondsAfterFinished, job.Spec.Template.Spec.PriorityClassName
		if ttl != tc.ttl || priority != tc.priority {
			t.Errorf("%s: it is kept for %d s, with priority %q", name, ttl, priority)
		}
	}
}

// TestABackupNeedsNoDisk: it is streamed, so that its Job mounts nothing but Secrets, to read.
func TestABackupNeedsNoDisk(t *testing.T) {
	for _, name := range []string{"minimal", "full", "group"} {
		c := cluster(t, name)
		pod := BackupJob(c, aBackupOf(c), "cnmsql:v1").Spec.Template.Spec
		secrets := map[string]bool{}
		var given []corev1.KeyToPath
		for _, v := range pod.Volumes {
			if v.Secret == nil {
				t.Errorf("%s: the volume %s is no Secret: %+v", name, v.Name, v.VolumeSource)
				continue
			}
			secrets[v.Secret.SecretName] = true
			if v.Name == volumeBackupAccount {
				given = v.Secret.Items
			}
		}
		want := map[string]bool{"monday-backup": true, "monday-backup-tls": true,
			Names(c.Name).ControlSecret(): true}
		if diff := cmp.Diff(want, secrets); diff != "" {
			t.Errorf("%s: its Secrets (-wanted +got):\n%s", name, diff)
		}
		only := []corev1.KeyToPath{{Key: "backup-username", Path: "username"},
			{Key: "backup-password", Path: "password"}}
		if diff := cmp.Diff(only, given); diff != "" {
			t.Errorf("%s: of the Secret of the manager's account it has (-wanted +got):\n%s", name, diff)
		}
		for _, container := range append(pod.InitContainers, pod.Containers...) {
			if len(container.VolumeMounts) != len(want) {
				t.Errorf("%s: it mounts %+v", name, container.VolumeMounts)
			}
			for _, m := range container.VolumeMounts {
				if !m.ReadOnly {
					t.Errorf("%s: %s is mounted to write", name, m.Name)
				}
			}
			read := container.SecurityContext.ReadOnlyRootFilesystem
			if c.Spec.SecurityContext == nil && (read == nil || !*read) {
				t.Errorf("%s: it may write into its image", name)
			}
		}
	}
}

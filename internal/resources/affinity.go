package resources

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
)

// affinity keeps the instances of a cluster apart, besides what the user asks
// for. It is nil when nobody asks for anything.
func affinity(c *v1alpha1.Cluster) *corev1.Affinity {
	spec := c.Spec.Affinity
	out := &corev1.Affinity{
		NodeAffinity:    spec.NodeAffinity,
		PodAffinity:     spec.AdditionalPodAffinity,
		PodAntiAffinity: spec.AdditionalPodAntiAffinity.DeepCopy(),
	}
	if spec.EnablePodAntiAffinity == nil || *spec.EnablePodAntiAffinity {
		out.PodAntiAffinity = keepApart(c, out.PodAntiAffinity)
	}
	if *out == (corev1.Affinity{}) {
		return nil
	}
	return out
}

// keepApart adds the generated term to those of the user.
func keepApart(c *v1alpha1.Cluster, anti *corev1.PodAntiAffinity) *corev1.PodAntiAffinity {
	if anti == nil {
		anti = &corev1.PodAntiAffinity{}
	}
	key := c.Spec.Affinity.TopologyKey
	if key == "" {
		key = corev1.LabelHostname
	}
	term := corev1.PodAffinityTerm{
		TopologyKey:   key,
		LabelSelector: &metav1.LabelSelector{MatchLabels: InstanceLabels(c)},
	}
	if c.Spec.Affinity.PodAntiAffinityType == "required" {
		anti.RequiredDuringSchedulingIgnoredDuringExecution =
			append(anti.RequiredDuringSchedulingIgnoredDuringExecution, term)
		return anti
	}
	anti.PreferredDuringSchedulingIgnoredDuringExecution = append(anti.PreferredDuringSchedulingIgnoredDuringExecution,
		corev1.WeightedPodAffinityTerm{Weight: 100, PodAffinityTerm: term})
	return anti
}

package draft

import (
	"slices"

	"cnmsql.co/internal/core"
)

// FencingChanged are the instances of which a human wants another fencing than the list
// says. What is asked for by one that has no Pod at the moment stays as it was.
func (d *Draft) FencingChanged() []*core.Instance {
	var out []*core.Instance
	for i := range d.Instances {
		in := &d.Instances[i]
		pod, known := in.Pod.Get()
		if known && pod.Exists && pod.FencingRequested != d.IsFenced(in.Name) {
			out = append(out, in)
		}
	}
	return out
}

// IsFenced, by what is decided so far.
func (d *Draft) IsFenced(name string) bool { return slices.Contains(d.Status.Fenced, name) }

// FencedText tells why a fenced instance is not made primary.
func FencedText(cluster, name string) string {
	return "it is fenced; to end that: kubectl cnmsql fence off " + cluster + " " + name
}

// Fence puts an instance on the list of those that a human takes out of service, and
// tells what that means.
func (d *Draft) Fence(name, so string) {
	d.Status.Fenced = append(d.Status.Fenced, name)
	d.Tell(core.ReasonFenced, name+" is fenced: "+so)
}

// Unfence takes it off the list.
func (d *Draft) Unfence(name, so string) {
	d.Status.Fenced = Without(d.Status.Fenced, name)
	d.Tell(core.ReasonUnfenced, name+" is not fenced any more: "+so)
}

// TidyFenced takes those off the list that are no instances any more. A list that has
// changed is for others to see, so that they are looked at again.
func (d *Draft) TidyFenced() {
	d.Status.Fenced = slices.DeleteFunc(d.Status.Fenced, func(name string) bool { return d.Instance(name) == nil })
	slices.Sort(d.Status.Fenced)
	if !slices.Equal(d.Status.Fenced, d.Cluster.Status.Fenced) {
		d.Again = true
	}
}

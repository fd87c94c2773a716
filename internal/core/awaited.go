package core

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// PodAwaited stands for a Pod that was made and has not been seen yet, in a status that
// was written before such Pods had names of their own: any Pod that is seen answers it.
const PodAwaited = "awaited"

// AwaitedPod is the name by which a Pod is awaited: it is in the status before the Pod is
// made, and on that Pod and no other. No number is given twice.
func AwaitedPod(n int) string { return fmt.Sprintf("%s-%d", PodAwaited, n) }

// AwaitedPods stand for all Pods that may have been made by the name of that number: so
// many were, and nothing was heard of any, that they are told apart no more. None of them
// answers it.
func AwaitedPods(n int) string { return AwaitedPod(n) + several }

const several = "+"

// AwaitedNumber is the number in a name by which one Pod is awaited or several are; 0 for
// any other word.
func AwaitedNumber(name string) (n int, many bool) {
	digits, is := strings.CutPrefix(name, PodAwaited+"-")
	digits, many = strings.CutSuffix(digits, several)
	if n, _ = strconv.Atoi(digits); !is || n <= 0 {
		return 0, false
	}
	return n, many
}

// How many names and UIDs are remembered for an instance.
const (
	NotMadeKept = 16
	EndedKept   = 8
)

// NotMade remembers by which names Pods of one instance are awaited that were surely never made, or never
// had a node: what is awaited by them cannot take writes.
type NotMade struct {
	names []string
	// last is the name by which a Pod was asked for last. It may be under way.
	last string
}

// Ask notes that a Pod is about to be made by that name. It may exist from now on.
func (m *NotMade) Ask(name string) {
	m.names = slices.DeleteFunc(m.Names(), func(n string) bool { return n == name })
	m.last = name
}

// Refused notes that no Pod was made by that name, or that it never had a node.
func (m *NotMade) Refused(name string) {
	if name != "" {
		m.names = withLast(m.names, name, NotMadeKept)
	}
}

// Unasked notes that no Pod is asked for by that name. Of the name that was asked for last it says nothing,
// because that Pod may be made yet.
func (m *NotMade) Unasked(name string) {
	if m.last != name {
		m.Refused(name)
	}
}

// Names are those names.
func (m NotMade) Names() []string { return slices.Clone(m.names) }

// EndedPods are the UIDs of Pods of one instance of which the kubelet reported the end before they were
// removed: the report is a proof that the object can no longer give.
type EndedPods []string

// With is with another one.
func (e EndedPods) With(uid string) EndedPods { return withLast(e, uid, EndedKept) }

// withLast adds one that is not there yet, and forgets the first beyond so many.
func withLast[S ~[]string](all S, one string, kept int) S {
	if slices.Contains(all, one) {
		return all
	}
	all = append(slices.Clip(all), one)
	return all[max(0, len(all)-kept):]
}

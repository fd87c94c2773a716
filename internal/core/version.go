package core

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// CompareVersions is negative when the server of the first version is older than that of the
// second, and positive when it is newer. Only numbers count, as far as there are any: what
// is unknown is older than all.
func CompareVersions(a, b string) int { return slices.Compare(numbers(a), numbers(b)) }

// CompareSeries is negative when the server of the first version is of an older series than
// that of the second, so that it may not be able to follow it. Which series is not known
// comes last.
func CompareSeries(a, b string) int {
	x, y := seriesOf(a), seriesOf(b)
	if x == nil || y == nil {
		return cmp.Compare(len(y), len(x))
	}
	return slices.Compare(x, y)
}

// CanClone reports whether MySQL's clone copies a donor's data to a recipient of that version. It
// refuses every other series, in both directions. Of a version that is not known the servers
// decide. (9.7 is announced to be copied to the long-term series after it. Which one that is
// cannot be told by its number, and it is not relied on.)
func CanClone(donor, recipient string) bool {
	x, y := seriesOf(donor), seriesOf(recipient)
	return x == nil || y == nil || slices.Equal(x, y)
}

// allowlistWhileRunning is the first version that can be told whom to admit while it is a member.
const allowlistWhileRunning = "8.0.24"

// AdmitsAtOnce reports whether a member of that version admits whom it is told to, and nobody else, from
// then on. Of a version that is not known it does not.
func AdmitsAtOnce(version string) bool { return CompareVersions(version, allowlistWhileRunning) >= 0 }

// CanCloneTo is CanClone of two instances, by what they say.
func (in *Instance) CanCloneTo(recipient *Instance) bool {
	return !in.Report.Is(func(from Report) bool {
		return recipient.Report.Is(func(to Report) bool { return !CanClone(from.Version, to.Version) })
	})
}

// unsteady80 are the versions of 8.0 each of which is as good as a series: they brought new features,
// and clone took none but the same version before 8.0.37.
const unsteady80 = 37

// seriesOf is the first two numbers of a version, and a third one that is 0 but in MySQL 8.0;
// nil when they are not known.
func seriesOf(version string) []int {
	n := numbers(version)
	if len(n) < 2 {
		return nil
	}
	if n[0] == 8 && n[1] == 0 && len(n) > 2 {
		return []int{8, 0, min(n[2], unsteady80)}
	}
	return []int{n[0], n[1], 0}
}

// numbers are those that a version begins with: of "8.0.22-13" 8, 0 and 22.
func numbers(version string) []int {
	var out []int
	for part := range strings.SplitSeq(strings.SplitN(version, "-", 2)[0], ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return out
		}
		out = append(out, n)
	}
	return out
}

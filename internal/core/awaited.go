package core

import (
	"fmt"
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

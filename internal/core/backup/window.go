package backup

import (
	"fmt"
	"strconv"
	"time"
)

// longestWindow is a century, in days: a duration holds little more.
const longestWindow = 36525

// daysOf are the units of a retention policy, in days.
var daysOf = map[byte]int{'d': 1, 'w': 7, 'm': 31}

// Window reads a retention policy: 30d, 8w, or 12m, in months of 31 days. More than a
// century is a century.
func Window(policy string) (time.Duration, error) {
	end := len(policy) - 1
	if end < 1 || end > 4 || policy[0] == '0' || daysOf[policy[end]] == 0 {
		return 0, wrongWindow(policy)
	}
	n, err := strconv.ParseUint(policy[:end], 10, 16)
	if err != nil {
		return 0, wrongWindow(policy)
	}
	return time.Duration(min(int(n)*daysOf[policy[end]], longestWindow)) * 24 * time.Hour, nil
}

func wrongWindow(policy string) error {
	return fmt.Errorf("the retention policy %q is not a number of at most four digits and d, w or m, as 30d, 8w or 12m",
		policy)
}

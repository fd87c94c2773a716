package agent

import (
	"testing"
	"time"
)

// TestATokenIsRefusedWhenItHasBeenForAWhile holds that neither a moment of refusals is told, nor two moments
// that are far apart, and that one answer to a token that is taken ends it.
func TestATokenIsRefusedWhenItHasBeenForAWhile(t *testing.T) {
	const taken = -1
	for name, c := range map[string]struct {
		refusedAt []int // seconds; taken: an answer to a token that is taken, at that moment
		want      bool
	}{
		"never":                            {nil, false},
		"once":                             {[]int{0}, false},
		"for less":                         {every(29), false},
		"for as long as it takes":          {every(30), true},
		"taken since":                      {append(every(40), taken), false},
		"taken meanwhile":                  {append(append(every(20), taken), 21, 25, 30, 35, 40, 45, 49), false},
		"twice, and nothing heard between": {[]int{0, 40}, false},
		"for long, then not heard":         {append(every(30), 500), true},
		"again after it was not heard":     {append([]int{0}, 40, 45, 50, 55, 60, 65, 70), true},
	} {
		t.Run(name, func(t *testing.T) {
			var token Token
			began := time.Unix(1e9, 0)
			for _, at := range c.refusedAt {
				token.Answered(at != taken, began.Add(time.Duration(at)*time.Second))
			}
			if got := token.IsRefused(); got != c.want {
				t.Errorf("%v, wanted %v", got, c.want)
			}
		})
	}
}

// every is each second from 0 to the last.
func every(last int) (all []int) {
	for at := range last + 1 {
		all = append(all, at)
	}
	return all
}

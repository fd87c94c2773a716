package archive

import (
	"errors"
	"testing"
)

// TestABranchIsFoundThatNoListingTells holds that the branch before one that is to be begun is found, however
// many promotions archived nothing since, where the listing lacks it.
func TestABranchIsFoundThatNoListingTells(t *testing.T) {
	get := func(there ...int64) func(int64) (Branch, bool, error) {
		return func(epoch int64) (b Branch, found bool, err error) {
			for _, e := range there {
				if e == epoch {
					return Branch{Epoch: e}, true, nil
				}
			}
			return b, false, nil
		}
	}
	for _, c := range []struct {
		listed, there []int64
		want          int64
	}{
		{nil, []int64{1, 2}, 2},
		{[]int64{1}, []int64{1, 2}, 2},
		{[]int64{2, 1}, []int64{1, 2}, 2},
		{[]int64{1}, []int64{1, 21}, 21},
		{nil, nil, 0},
	} {
		b, found, err := Before(c.listed, 22, get(c.there...))
		if b.Epoch != c.want || found != (c.want > 0) || err != nil {
			t.Errorf("of %d, listed %d: %d, %t, %v", c.there, c.listed, b.Epoch, found, err)
		}
	}
	unreadable := errors.New("cannot be read")
	failing := func(epoch int64) (Branch, bool, error) { return Branch{}, false, unreadable }
	if _, _, err := Before(nil, 22, failing); !errors.Is(err, unreadable) {
		t.Errorf("what cannot be read counts as absent: %v", err)
	}
}

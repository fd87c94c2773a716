package registry

import (
	"errors"
	"strings"
	"testing"

	"cnmsql.co/tools/localkube/internal/layout"
)

func newRegistry(t *testing.T) Registry {
	return Registry{Root: t.TempDir(), Usable: func(layout.Cluster) error { return nil }}
}

func mustClaim(t *testing.T, r Registry, name, dir string, nodes int) layout.Cluster {
	t.Helper()
	c, err := r.Claim(name, dir, nodes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestClustersGetDifferentIndexes(t *testing.T) {
	r := newRegistry(t)
	a, b := mustClaim(t, r, "a", "", 0), mustClaim(t, r, "b", "", 0)
	if a.Index == b.Index || a.Dir == b.Dir {
		t.Errorf("%+v and %+v collide", a, b)
	}
}

func TestClaimAgainKeepsWhatTheClusterHas(t *testing.T) {
	r := newRegistry(t)
	first := mustClaim(t, r, "a", "/some/dir", 5)
	if again := mustClaim(t, r, "a", "", 0); again != first {
		t.Errorf("%+v became %+v", first, again)
	}
}

func TestReleasedIndexIsFree(t *testing.T) {
	r := newRegistry(t)
	a := mustClaim(t, r, "a", "", 0)
	if err := r.Release("a"); err != nil {
		t.Fatal(err)
	}
	if b := mustClaim(t, r, "b", "", 0); b.Index != a.Index {
		t.Errorf("index %d was not given back", a.Index)
	}
}

func TestTakenNetworksAreSkipped(t *testing.T) {
	r := newRegistry(t)
	r.Usable = func(c layout.Cluster) error {
		if c.Index == 0 {
			return errors.New("taken")
		}
		return nil
	}
	if c := mustClaim(t, r, "a", "", 0); c.Index != 1 {
		t.Errorf("index %d", c.Index)
	}
}

func TestNoFreeNetworkSaysWhy(t *testing.T) {
	r := newRegistry(t)
	r.Usable = func(layout.Cluster) error { return errors.New("a route is in the way") }
	_, err := r.Claim("a", "", 0)
	if err == nil || !strings.Contains(err.Error(), "a route is in the way") {
		t.Errorf("%v", err)
	}
}

func TestClusterGrowsButNeitherShrinksNorMoves(t *testing.T) {
	r := newRegistry(t)
	mustClaim(t, r, "a", "/d", 3)
	if c := mustClaim(t, r, "a", "/d", 4); c.Nodes != 4 {
		t.Errorf("%d nodes", c.Nodes)
	}
	if _, err := r.Claim("a", "", 2); err == nil {
		t.Error("it shrank")
	}
	if _, err := r.Claim("a", "/e", 0); err == nil {
		t.Error("it moved")
	}
}

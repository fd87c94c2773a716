package verify

import (
	"strings"
	"testing"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// sampled is a Cluster of which a sample was taken, and a copy whose check is ordered.
func sampled(t *testing.T, s Sample) *world {
	w := newWorld()
	w.f.Sampler, w.f.ArchiveDelay = "db-3", time.Minute
	w.until(t, "sample").look()
	w.f.Sampling = Sampling{Asked: true, Done: true, Sample: s}
	w.look()
	w.f.Sampling = Sampling{}
	return w
}

func TestRowsAreComparedAtTheSameMoment(t *testing.T) {
	other := "9f1c0000-0000-0000-0000-000000000000"
	for name, c := range map[string]struct {
		executed string
		sums     []Sum
		reason   core.Reason
		words    []string
		compared int
	}{
		"the same": {uuid + ":1-9", twoTables.Sums, "", []string{"2 of them were compared"}, 2},
		"with numbers of its own": {uuid + ":1-9," + other + ":1-3", twoTables.Sums, "",
			[]string{"2 of them were compared"}, 2},
		"fewer rows": {uuid + ":1-9", []Sum{twoTables.Sums[0], {"shop.b", 2, "2-2"}}, core.VerifyDiffer,
			[]string{"1 of 2", "shop.b (2 rows, and 3 in the Cluster)"}, 2},
		"other rows": {uuid + ":1-9", []Sum{{"shop.a", 2, "1-2"}, twoTables.Sums[1]}, core.VerifyDiffer,
			[]string{"shop.a (2 rows, not all of them those of the Cluster)"}, 2},
		"a table less": {uuid + ":1-9", twoTables.Sums[:1], core.VerifyDiffer,
			[]string{"shop.b (it is missing"}, 2},
		"restored to less": {uuid + ":1-8", twoTables.Sums[:1], "",
			[]string{"no rows were compared: the restored server did not end"}, 0},
		"restored to more": {uuid + ":1-10", twoTables.Sums[:1], "",
			[]string{"no rows were compared: the restored server did not end"}, 0},
		"nothing was known": {"", nil, "", []string{"no rows were compared"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := sampled(t, twoTables).checked(t, Check{Done: true, Tables: 9, Checked: 9, Sums: c.sums,
				Executed: gtid.MustParse(c.executed)})
			phase := Succeeded
			if c.reason != "" {
				phase = Failed
			}
			w.ends(t, phase, c.reason, c.words...)
			if r := w.f.Record; r.Compared != c.compared || r.Sample != nil {
				t.Errorf("it recorded %+v", r)
			}
		})
	}
}

func TestWithoutASampleItGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		sampling Sampling
		word     string
		within   time.Duration
	}{
		"busy tables": {Sampling{Asked: true, Done: true, Sample: Sample{Executed: uuid + ":1-9", Changed: 7}},
			"all 7 tables", time.Minute},
		"no tables": {Sampling{Asked: true, Done: true, Sample: Sample{Executed: uuid + ":1-9"}},
			"small enough", time.Minute},
		"a long set": {Sampling{Asked: true, Done: true, Sample: Sample{Executed: strings.Repeat("x", 5000),
			Sums: twoTables.Sums}}, "too long", time.Minute},
		"an error": {Sampling{Asked: true, Error: "access denied"}, "access denied", time.Minute},
		"silence": {Sampling{Unreachable: "connection refused"}, "db-3 did not answer: connection refused",
			3 * time.Minute},
		"slowness": {Sampling{Asked: true}, "took too long", 31 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.f.Sampler, w.f.ArchiveDelay = "db-3", time.Minute
			w.until(t, "sample")
			w.f.Sampling = c.sampling
			for i := 0; i < 200 && w.f.Record.Phase == TakingSample; i++ {
				w.look()
			}
			if took := w.f.Now.Sub(w.f.Record.Started); took > c.within {
				t.Errorf("it went on after %s", took)
			}
			w.checked(t, Check{Done: true, Tables: 9, Checked: 9})
			w.ends(t, Succeeded, "", "no rows were compared: ", c.word)
		})
	}
	w := newWorld()
	w.f.NoSampler = "nothing is archived"
	w.checked(t, Check{Done: true, Tables: 9, Checked: 9}).ends(t, Succeeded, "", "nothing is archived")
}

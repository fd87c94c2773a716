package sim

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cnmsql.co/internal/core"
)

// TestInvariants runs as many seeds as there is time for; SEEDS says how many.
func TestInvariants(t *testing.T) {
	seeds := 200
	if n, err := strconv.Atoi(os.Getenv("SEEDS")); err == nil {
		seeds = n
	}
	cover := Coverage{}
	for seed := range uint64(seeds) {
		if r := Run(seed, cover); r.Violation != nil {
			t.Errorf("seed %d: %v\n%s", seed, r.Violation, strings.Join(Shrink(r).Story, "\n"))
			return
		}
	}
	// Few seeds do not reach everything; make sim asks for all.
	if missing := cover.Missing(); len(missing) > 8 {
		t.Errorf("not reached: %v", missing)
	}
}

// TestWhatMustBeReachedIsComplete holds the list against the constants of core.
func TestWhatMustBeReachedIsComplete(t *testing.T) {
	for _, file := range []string{"../core/reasons.go", "../core/diagnosis.go"} {
		asksForAll(t, file)
	}
}

func asksForAll(t *testing.T, path string) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{"Diagnosis": "diagnosis", "Proof": "proof", "Step": "step"}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		of, _ := spec.Type.(*ast.Ident)
		if of == nil || kinds[of.Name] == "" {
			return true
		}
		value, _ := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if value == string(core.ProofTakenOver) || value == string(core.PrimaryFollows) {
			return true // TestFollowing asks for them
		}
		if value == string(core.ProofAdopted) || of.Name == "Diagnosis" && strings.HasPrefix(value, "Group") {
			return true // no Cluster is deleted here, and none is a group
		}
		if !slices.ContainsFunc(must[kinds[of.Name]], func(name string) bool {
			return name == value || strings.HasSuffix(name, " "+value)
		}) {
			t.Errorf("nothing asks for %s %s", of.Name, value)
		}
		return true
	})
}

// TestOneSeedIsOneRun: byte for byte.
func TestOneSeedIsOneRun(t *testing.T) {
	for seed := range uint64(5) {
		if a, b := Tell(seed), Tell(seed); !slices.Equal(a.Story, b.Story) || a.Acked != b.Acked {
			t.Errorf("seed %d told two stories", seed)
		}
		if told, run := Tell(seed), Run(seed, Coverage{}); told.Acked != run.Acked || told.Simulated != run.Simulated {
			t.Errorf("seed %d: telling it changes it", seed)
		}
	}
}

// TestForgedTimes behave as those of a machine whose wall clock was set.
func TestForgedTimes(t *testing.T) {
	c := clock{}
	early := c.now(10 * time.Second)
	c.wall = -time.Hour
	late := c.now(11 * time.Second)
	switch {
	case late.Sub(early) != time.Second || !late.After(early):
		t.Error("two readings of one machine are not held against each other by its monotonic clock")
	case !kept(late).Before(kept(early)) || kept(early).Sub(kept(late)) != time.Hour-time.Second:
		t.Error("times that were kept are not held against each other by the wall clock")
	case kept(early).Format(time.RFC3339) != "2026-01-01T11:00:10Z":
		t.Errorf("the world begins at %s", kept(early))
	case !kept(early).Add(time.Hour).After(late):
		t.Error("a reading and a time that was kept are not held against each other by the wall clock")
	}
}

// TestComparisonsLeaveNothingOut changes every field by itself.
func TestComparisonsLeaveNothingOut(t *testing.T) {
	full := core.Report{Server: &core.Server{Replication: &core.Replication{}}, Clone: &core.Clone{},
		Room: &core.Room{}}
	eachField(reflect.ValueOf(&full).Elem(), func(path string, set, reset func()) {
		before := cloneReport(full)
		set()
		want := reflect.DeepEqual(before.WithoutPositions(), full.WithoutPositions())
		if got := sameButPositions(&before, &full); got != want {
			t.Errorf("Report.%s: sameButPositions says %t", path, got)
		}
		reset()
	})
	status := core.Status{Promotion: &core.Promotion{}, Operation: &core.Operation{}}
	eachField(reflect.ValueOf(&status).Elem(), func(path string, set, reset func()) {
		before := status
		p, o := *status.Promotion, *status.Operation
		before.Promotion, before.Operation = &p, &o
		set()
		if sameStatus(&before, &status) && !reflect.DeepEqual(before, status) {
			t.Errorf("Status.%s: sameStatus does not see it", path)
		}
		reset()
	})
}

func cloneReport(r core.Report) core.Report {
	s, c := *r.Server, *r.Clone
	rep := *s.Replication
	s.Replication = &rep
	r.Server, r.Clone = &s, &c
	return r
}

// eachField calls each for every field that can be set, pointers followed.
func eachField(v reflect.Value, each func(path string, set, reset func())) {
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Name
		switch {
		case f.Kind() == reflect.Pointer && !f.IsNil():
			eachField(f.Elem(), func(path string, set, reset func()) { each(name+"."+path, set, reset) })
		case f.Kind() == reflect.Struct && f.Type() != reflect.TypeFor[time.Time]() &&
			f.NumField() > 0 && f.Field(0).CanSet():
			eachField(f, func(path string, set, reset func()) { each(name+"."+path, set, reset) })
		default:
			old := reflect.New(f.Type()).Elem()
			old.Set(f)
			each(name, func() { change1(f) }, func() { f.Set(old) })
		}
	}
}

func change1(f reflect.Value) {
	switch {
	case f.Kind() == reflect.String:
		f.SetString("x")
	case f.CanInt():
		f.SetInt(7)
	case f.CanFloat():
		f.SetFloat(7)
	case f.Kind() == reflect.Bool:
		f.SetBool(true)
	case f.Type() == reflect.TypeFor[[]string]():
		f.Set(reflect.ValueOf([]string{"x"}))
	case f.Type() == reflect.TypeFor[time.Time]():
		f.Set(reflect.ValueOf(time.Unix(1, 0)))
	default:
		if u, ok := f.Addr().Interface().(interface{ UnmarshalText([]byte) error }); ok {
			_ = u.UnmarshalText([]byte("3E11FA47-71CA-11E1-9E33-C80AA9429562:1"))
		}
	}
}

// TestDivergenceIsRecordedAtOnce: a primary that fails a moment later could not be
// asked any more whether it has what a replica has.
func TestDivergenceIsRecordedAtOnce(t *testing.T) {
	tried := 0
	for seed := uint64(0); tried < 20; seed++ {
		w := newWorld(seed, &mutation{}, nil, &story{})
		w.bursts = []burst{{0, time.Hour}}
		w.runUntil(2 * time.Minute)
		s := w.serverOf(clusterName + "-2")
		if !w.isHealthy() || s == nil || s.epoch != 0 {
			continue
		}
		tried++
		rogue := s.db.append()
		s.db.commit(rogue)
		s.changed()
		w.runUntil(w.now + 1200*time.Millisecond)
		if got := w.api.cluster().status.Diverged; !slices.Contains(got, clusterName+"-2") {
			t.Errorf("seed %d: after 1.2 s the status knows of %v", seed, got)
		}
	}
}

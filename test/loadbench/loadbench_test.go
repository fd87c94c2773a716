package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/test/loadbench/throughput"
)

// wanted are options that can be carried out.
func wanted() options {
	return options{connections: "1,16", warm: time.Second, window: time.Second, rows: 10}
}

func TestWhatIsNotNamedIsMeasuredAsAWhole(t *testing.T) {
	p, err := wanted().plan()
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Equal(p.durabilities, throughput.Durabilities)
	if !all || len(p.kinds) != 2 || !slices.Equal(p.counts, []int{1, 16}) {
		t.Errorf("%+v", p)
	}
	o := wanted()
	o.only, o.workloads = "quorum,bare", "insert"
	if p, err = o.plan(); err != nil {
		t.Fatal(err)
	}
	if strings.Join(p.durabilities, ",") != "bare,quorum" || strings.Join(namesOf(p.kinds), ",") != "insert" {
		t.Errorf("%+v", p)
	}
	r := p.run(t.Context(), "9.7.4-2")
	const command = "make bench-load ONLY=quorum,bare WORKLOAD=insert CONNECTIONS=1,16"
	if r.Command != command || r.Server != "MySQL 9.7.4" || r.Window != 1 {
		t.Errorf("%+v", r)
	}
}

func TestWhatCannotBeMeasuredIsRefusedByItsName(t *testing.T) {
	for want, change := range map[string]func(*options){
		"-only: there is no \"lossless\"; there are bare, pair, trio": func(o *options) { o.only = "bare,lossless" },
		"-workload: there is no \"tpcc\"; there are insert":           func(o *options) { o.workloads = "tpcc" },
		"-connections: \"0\"":     func(o *options) { o.connections = "1,0" },
		"-connections: \"many\"":  func(o *options) { o.connections = "many" },
		"-connections: \"1000\"":  func(o *options) { o.connections = "1000" },
		"-rows and -window must":  func(o *options) { o.rows = 0 },
		"-rows and -window must ": func(o *options) { o.window = 0 },
	} {
		o := wanted()
		change(&o)
		if _, err := o.plan(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v does not begin with %s", err, want)
		}
	}
}

func TestEveryDurabilityHasItsPlaceAndItsTurn(t *testing.T) {
	if !slices.Equal(slices.Sorted(slices.Values(order)), slices.Sorted(slices.Values(throughput.Durabilities))) {
		t.Errorf("measured are %v, and the table has %v", order, throughput.Durabilities)
	}
	for _, name := range order {
		if _, found := durabilities[name]; found != isOfCluster(name) {
			t.Errorf("%s: a cluster's: %t, with a manifest: %t", name, isOfCluster(name), found)
		}
	}
}

func TestManifestsAskForTheDurabilityOfTheirName(t *testing.T) {
	got := map[string]string{}
	for name, d := range durabilities {
		var c v1alpha1.Cluster
		if err := yaml.UnmarshalStrict([]byte(d.manifest()), &c); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, d.manifest())
		}
		allowed := c.Spec.MySQL.Parameters["max_connections"]
		if c.Name != key.Name || c.Namespace != key.Namespace || c.Spec.Instances != 3 || allowed != "400" {
			t.Errorf("%s: %+v", name, c.Spec)
		}
		got[name] = string(c.Spec.Replication.Mode)
		if s := c.Spec.MySQL.SemiSync; s != nil && s.Enabled {
			got[name] += string(s.DataDurability)
		}
	}
	for name, want := range map[string]string{
		"async": "", "semi-sync": "preferred", "quorum": "quorum", "group": "groupReplication",
	} {
		if got[name] != want {
			t.Errorf("%s asks for %q", name, got[name])
		}
	}
}

func TestFiguresOfAnotherDurabilityAreRefused(t *testing.T) {
	before := acks{10, 2}
	for _, c := range []struct {
		at    place
		after acks
		n     int64
		fails bool
	}{
		{place{}, acks{10, 2}, 0, false},
		{place{}, acks{10, 9}, 0, false},
		{place{awaits: true}, acks{20, 2}, 0, false},
		{place{awaits: true}, acks{20, 5}, 3, false},
		{place{awaits: true}, acks{10, 5}, 0, true},
		{place{awaits: true, always: true}, acks{20, 2}, 0, false},
		{place{awaits: true, always: true}, acks{20, 3}, 1, true},
		{place{awaits: true, always: true}, acks{10, 2}, 0, true},
	} {
		if n, err := c.at.notAwaited(before, c.after); n != c.n || (err != nil) != c.fails {
			t.Errorf("%+v: %d, %v", c, n, err)
		}
	}
}

func TestADirectoryOnAnotherDiskIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := sameDisk(dir, dir); err != nil {
		t.Error(err)
	}
	if err := sameDisk(dir, "/proc"); err == nil || !strings.Contains(err.Error(), "-dir") {
		t.Errorf("it says %v", err)
	}
	if sameDisk(dir, dir+"/none") == nil {
		t.Error("what is not there is on the same disk")
	}
}

package main

import "testing"

func TestComplainsOfWhoAsksInWhichTopologyItIs(t *testing.T) {
	for name, c := range map[string]struct{ path, text, says string }{
		"a topology that is compared": {"internal/core/x.go", "package core\nvar x = t == TopologyGroup\n",
			"TopologyGroup: ask"},
		"a topology that is a field": {"internal/x/x.go", "package p\nvar x = c.Topology != y\n", "Topology: ask"},
		"a topology that is a case": {"internal/x/x.go", "package p\nfunc f() { switch t {\ncase " +
			"core.TopologyAsync:\n} }\n", "TopologyAsync: ask"},
		"a mode of replication that is compared": {"api/v1alpha1/x.go", "package p\nvar x = ReplicationGroup == m\n",
			"ReplicationGroup: ask"},
		"a mode of replication that is read": {"internal/x/x.go", "package p\nvar x = c.Spec.Replication.Mode\n",
			"declared.Topology"},
		"a group that is there": {"internal/x/x.go", "package p\nvar x = c.Group != nil\n", "HasView"},
		"a group that is not there": {"internal/x/x.go",
			"package p\nvar x = nil == r.Server.Group\n", "HasView"},
		"a group of which one knows itself": {"internal/x/x.go", "package p\nvar x = g != nil && r.Group.Has()\n", ""},
		"a topology that is asked":          {"internal/x/x.go", "package p\nvar x = c.Topology.HasLease() == y\n", ""},
		"a row of each topology": {"internal/x/x.go", "package p\nvar x = map[core.Topology]int{" +
			"core.TopologyAsync: 1}[c.Topology]\n", ""},
		"a key of Kubernetes": {"internal/x/x.go", "package p\nvar x = a.TopologyKey == s\n", ""},
		"what a topology implies": {topologyFile,
			"package core\nvar x = t == TopologyGroup || s.Group == nil\n", ""},
		"who reads a mode":   {"internal/declared/x.go", "package p\nvar x = s.Replication.Mode == t\n", ""},
		"a test may compare": {"internal/x/x_test.go", "package p\nvar x = t == core.TopologyGroup\n", ""},
	} {
		t.Run(name, func(t *testing.T) { holdsTo(t, c.path, c.text, c.says) })
	}
}

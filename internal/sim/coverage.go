package sim

import (
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"

	"cnmsql.co/internal/core"
)

// Coverage counts what was reached, by kind and name.
type Coverage map[string]map[string]int

func (c Coverage) count(kind, name string) {
	if c == nil {
		return
	}
	k := c[kind]
	if k == nil {
		k = map[string]int{}
		c[kind] = k
	}
	k[name]++
}

// plan counts what a plan says.
func (c Coverage) plan(o *core.Observation, plan *core.Plan) {
	s := &plan.Status
	c.count("diagnosis", string(s.Diagnosis))
	c.count("phase", string(s.Phase))
	if op := s.Operation; op != nil {
		c.count("step", string(op.Kind)+" "+string(op.Step))
	}
	for _, e := range plan.Events {
		kind := "event"
		if e.Warning {
			kind = "warning"
		}
		c.count(kind, string(e.Reason))
	}
	for _, e := range plan.Effects {
		c.count("effect", nameOf(e))
	}
}

func nameOf(v any) string { return reflect.TypeOf(v).Name() }

// Print writes the table.
func (c Coverage) Print(to io.Writer) {
	for _, kind := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(to, "%s\n", kind)
		for _, name := range slices.Sorted(maps.Keys(c[kind])) {
			fmt.Fprintf(to, "  %9d  %s\n", c[kind][name], name)
		}
	}
}

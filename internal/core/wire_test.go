package core_test

import (
	"encoding"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"cnmsql.co/internal/core"
)

var rewrite = flag.Bool("rewrite", false, "write down the fields of a report as they are")

// TestAReportIsUnderstoodByEveryVersion holds the fields of a report, which operators and managers of other releases
// read and write: one may be added, and none is renamed, removed or of another type afterwards.
func TestAReportIsUnderstoodByEveryVersion(t *testing.T) {
	const file = "testdata/report.txt"
	is := fieldsOf(reflect.TypeFor[core.Report](), "", nil)
	slices.Sort(is)
	if *rewrite {
		if err := os.WriteFile(file, []byte(strings.Join(is, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	was := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, field := range was {
		if !slices.Contains(is, field) {
			t.Errorf("%s is gone from reports: who reads or writes those of another release loses it", field)
		}
	}
	for _, field := range is {
		if !slices.Contains(was, field) {
			t.Errorf("%s is new: add it to %s with go test ./internal/core -run %s -rewrite", field, file, t.Name())
		}
	}
}

// fieldsOf are the fields of a type as JSON has them, with their types.
func fieldsOf(is reflect.Type, path string, all []string) []string {
	switch is.Kind() {
	case reflect.Pointer:
		return fieldsOf(is.Elem(), path, all)
	case reflect.Slice, reflect.Array:
		return fieldsOf(is.Elem(), path+"[]", all)
	case reflect.Map:
		return fieldsOf(is.Elem(), path+"{}", all)
	case reflect.Struct:
		if !saysItself(is) {
			return fieldsIn(is, path, all)
		}
		return append(all, path+" "+is.String())
	}
	return append(all, path+" "+is.Kind().String())
}

func fieldsIn(is reflect.Type, path string, all []string) []string {
	for field := range is.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported() && !field.Anonymous:
		case field.Anonymous && name == "":
			all = fieldsOf(field.Type, path, all)
		case name == "":
			all = fieldsOf(field.Type, path+"."+field.Name, all)
		default:
			all = fieldsOf(field.Type, path+"."+name, all)
		}
	}
	return all
}

// saysItself reports whether a type has a JSON of its own.
func saysItself(is reflect.Type) bool {
	is = reflect.PointerTo(is) // which has the methods of both
	return is.Implements(reflect.TypeFor[json.Marshaler]()) || is.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

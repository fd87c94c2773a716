package v1alpha1_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"cnmsql.co/api/v1alpha1"
)

// fixed are the types of fields that take the one value which says what is done anyway: rules hold
// them to it, and nobody reads them.
var fixed = map[string]bool{"FixedClusterFields": true, "FixedGroupFields": true, "FixedHeartbeat": true}

// heldByRules are other fields that nobody has to read, each by its path: rules hold them to what is
// done anyway, or they are for people. A field that is not here, not refused by a rule and not read
// is accepted and ignored: have somebody read it, or refuse it.
var heldByRules = map[string]bool{
	"spec.description":                         true,
	"spec.replication.heartbeat":               true,
	"spec.storage.resizeInUseVolumes":          true,
	"spec.backup.objectStore.signatureVersion": true,
}

// TestEveryFieldOfAClusterIsReadBySomebody: a field that is accepted and ignored promises what
// nobody keeps.
func TestEveryFieldOfAClusterIsReadBySomebody(t *testing.T) {
	read, refused := fieldsRead(t, "../../internal", "../../cmd"), fieldsRefused(t)
	unread := map[string]bool{}
	eachField(reflect.TypeFor[v1alpha1.ClusterSpec](), "spec", map[reflect.Type]bool{}, func(path, name string) {
		tag := path[strings.LastIndexByte(path, '.')+1:]
		if !read[name] && !refused[tag] {
			unread[path] = true
		}
	})
	for path := range unread {
		if !heldByRules[path] {
			t.Errorf("%s is accepted, and nothing outside of api/ reads it", path)
		}
	}
	for path := range heldByRules {
		if !unread[path] {
			t.Errorf("%s is read, or is gone: take it off the list", path)
		}
	}
	if read["NoSuchField"] || !read["FailoverDelay"] || refused["failoverDelay"] || !refused["envFrom"] {
		t.Error("it does not tell what is read from what is not")
	}
}

// refusal is the rule of a marker that refuses a field wherever it is set.
var refusal = regexp.MustCompile(`[&"] ?!has\(self\.(\w+)\)(?: &&|")`)

// refusalUnlessEmpty is one of a list or a map that takes nothing but an empty one.
var refusalUnlessEmpty = regexp.MustCompile(`rule="!has\(self\.(\w+)\) \|\| self\.(\w+)\.size\(\) == 0"`)

// fieldsRefused are the names in manifests of the fields that rules refuse.
func fieldsRefused(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*_types.go")
	if err != nil {
		t.Fatal(err)
	}
	refused := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(text), "\n") {
			for _, found := range refusal.FindAllStringSubmatch(strings.ReplaceAll(line, "&&", "&& &&"), -1) {
				refused[found[1]] = !strings.Contains(line, "||")
			}
			if found := refusalUnlessEmpty.FindStringSubmatch(line); found != nil && found[1] == found[2] {
				refused[found[1]] = true
			}
		}
	}
	return refused
}

// eachField calls do for each field below a type of this API, by its path and its name in Go.
func eachField(of reflect.Type, path string, seen map[reflect.Type]bool, do func(path, name string)) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
		of = of.Elem()
	}
	isOurs := of.PkgPath() == reflect.TypeFor[v1alpha1.ClusterSpec]().PkgPath()
	if of.Kind() != reflect.Struct || !isOurs || seen[of] || fixed[of.Name()] {
		return
	}
	seen[of] = true
	for i := range of.NumField() {
		f := of.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == "" { // inlined
			eachField(f.Type, path, seen, do)
			continue
		}
		do(path+"."+tag, f.Name)
		eachField(f.Type, path+"."+tag, seen, do)
	}
}

// fieldsRead are the names that are selected in product code below some directories, or in a
// function of this package that is selected there.
func fieldsRead(t *testing.T, dirs ...string) map[string]bool {
	t.Helper()
	read := map[string]bool{}
	for _, dir := range dirs {
		for _, file := range parsed(t, dir) {
			selected(file, read)
		}
	}
	helpers := parsed(t, ".")
	for before := -1; before < len(read); { // one helper asks another
		before = len(read)
		for _, file := range helpers {
			for _, decl := range file.Decls {
				if f, is := decl.(*ast.FuncDecl); is && read[f.Name.Name] && f.Name.Name != "DeepCopy" &&
					f.Name.Name != "DeepCopyInto" {
					selected(f, read)
				}
			}
		}
	}
	return read
}

func selected(in ast.Node, into map[string]bool) {
	written := map[ast.Node]bool{}
	ast.Inspect(in, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt: // to set a field is not to read it
			for _, to := range n.Lhs {
				written[to] = true
			}
		case *ast.SelectorExpr:
			if !written[n] {
				into[n.Sel.Name] = true
			}
		}
		return true
	})
}

// parsed is the product code below a directory.
func parsed(t *testing.T, dir string) (all []*ast.File) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		all = append(all, file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// namedGo finds what a document writes as `internal/core/agent.Facts.Permitted`: a package, or a file
// in it, and a name with the name of its method or field.
var namedGo = regexp.MustCompile("`((?:internal|cmd|api|test|tools)/[a-z0-9_/]+)(?:\\.([A-Za-z]\\w*))?(?:\\.(\\w+))?`")

// checkGoNames complains of packages, files and identifiers that documents name and that do not exist.
func checkGoNames(root string) (complaints []string, err error) {
	known := map[string]map[string]bool{}
	err = eachFile(root, ".md", func(path, text string) {
		if isHistory(path) {
			return
		}
		for _, m := range namedGo.FindAllStringSubmatch(text, -1) {
			if !exists(root, m[1], m[2], m[3], known) {
				complaints = append(complaints, fmt.Sprintf("%s: there is no %s", path, strings.Trim(m[0], "`")))
			}
		}
	})
	return complaints, err
}

// isHistory reports whether a document tells of the code as it was on its date.
func isHistory(path string) bool { return strings.Contains(path, "docs/design/2") }

func exists(root, dir, name, member string, known map[string]map[string]bool) bool {
	plain := filepath.Join(root, dir)
	if member != "" {
		name += "." + member
	}
	if _, err := os.Stat(strings.TrimSuffix(plain+"."+name, ".")); err == nil {
		return true
	}
	if known[dir] == nil {
		known[dir] = declared(plain)
	}
	return known[dir][name]
}

// declared returns the names at the top level of a package, and those of methods and fields behind
// the name of their type. A directory that cannot be read declares nothing.
func declared(dir string) map[string]bool {
	names := map[string]bool{}
	files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			continue
		}
		for _, d := range parsed.Decls {
			declare(names, d)
		}
	}
	return names
}

func declare(names map[string]bool, d ast.Decl) {
	if f, ok := d.(*ast.FuncDecl); ok {
		name := f.Name.Name
		if f.Recv != nil {
			name = receiver(f.Recv.List[0].Type) + "." + name
		}
		names[name] = true
		return
	}
	for _, s := range d.(*ast.GenDecl).Specs {
		switch s := s.(type) {
		case *ast.ValueSpec:
			for _, n := range s.Names {
				names[n.Name] = true
			}
		case *ast.TypeSpec:
			names[s.Name.Name] = true
			declareFields(names, s)
		}
	}
}

func declareFields(names map[string]bool, s *ast.TypeSpec) {
	if t, ok := s.Type.(*ast.StructType); ok {
		for _, f := range t.Fields.List {
			for _, n := range f.Names {
				names[s.Name.Name+"."+n.Name] = true
			}
		}
	}
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	}
	return nameOf(e)
}

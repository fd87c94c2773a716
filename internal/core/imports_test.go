package core_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Core decides; it does nothing. It may import these and, of this module, gtid
// and itself.
var allowedImports = []string{"cmp", "errors", "fmt", "hash/fnv", "maps", "math", "slices", "sort", "strconv",
	"strings", "time"}

// Of package time it may know moments and durations, not the clock.
var forbiddenTime = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer",
	"Local", "LoadLocation"}

// TestCoreIsPure holds core and its subpackages to that.
func TestCoreIsPure(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files++
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		checkImports(t, path, file)
		checkBody(t, path, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 10 {
		t.Fatalf("only %d files were looked at", files)
	}
}

func checkImports(t *testing.T, path string, file *ast.File) {
	for _, spec := range file.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		isOurs := name == "cnmsql.co/internal/gtid" || name == "cnmsql.co/internal/core" ||
			strings.HasPrefix(name, "cnmsql.co/internal/core/")
		if !isOurs && !slices.Contains(allowedImports, name) {
			t.Errorf("%s imports %s: core decides and does nothing; give it the fact instead", path, name)
		}
		if spec.Name != nil {
			t.Errorf("%s renames %s", path, name)
		}
	}
}

func checkBody(t *testing.T, path string, file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "time" && slices.Contains(forbiddenTime, n.Sel.Name) {
				t.Errorf("%s uses time.%s: time is part of what is observed", path, n.Sel.Name)
			}
		case *ast.GoStmt:
			t.Errorf("%s starts a goroutine", path)
		}
		return true
	})
}

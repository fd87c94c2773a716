package kubebuild

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEmbeddedSourcesParse(t *testing.T) {
	b := Build{dir: t.TempDir()}
	if err := b.writeSources(); err != nil {
		t.Fatal(err)
	}
	parsed := 0
	filepath.WalkDir(b.dir, func(path string, _ fs.DirEntry, _ error) error {
		if strings.HasSuffix(path, ".go") {
			parsed++
			if _, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.AllErrors); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	if parsed < 3 {
		t.Errorf("%d Go files were written", parsed)
	}
}

func TestEveryComponentIsKnownToTheBinary(t *testing.T) {
	main, err := sources.ReadFile("src/main.go.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range components {
		if !strings.Contains(string(main), `case "`+c+`":`) {
			t.Errorf("%s would end as unknown component", c)
		}
	}
}

func TestRequiredVersionIsTheReportedOne(t *testing.T) {
	mod, err := sources.ReadFile("src/go.mod.txt")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(mod), "k8s.io/kubernetes "+Version+"\n") {
		t.Errorf("go.mod does not require %s", Version)
	}
}

func TestInterruptedBuildIsNotFound(t *testing.T) {
	cache := t.TempDir()
	b, _ := Find(cache)
	os.MkdirAll(filepath.Join(b.dir, "bin"), 0o755)
	os.WriteFile(filepath.Join(b.dir, "bin", binary), nil, 0o755)
	if _, ok := Find(cache); ok {
		t.Error("a build without links is taken for whole")
	}
}

package main

import (
	"strings"
	"testing"
)

func TestComplainsOfGoNamesThatDocumentsNameAndNobodyWrote(t *testing.T) {
	const code = "package a\ntype T[X any] struct { F int }\nfunc (t *T[X]) M() {}\n" +
		"func f() {}\nconst c = 1\ntype I interface{}\n"
	inTree(t, map[string]string{
		"internal/a/a.go":      code,
		"internal/a/a_test.go": "package a\nfunc inTest() {}\n",
		"docs/a.md": "`internal/a` `internal/a.T` `internal/a.T.M` `internal/a.T.F` `internal/a.f` `internal/a.c`\n" +
			"`internal/a/a.go` `internal/a.I` internal/b is no name in quotes, nor is `go run ./internal/b`\n",
		"docs/b.md":           "`internal/b` `internal/a.g` `internal/a.T.N` `internal/a/b.go` `internal/a.inTest`\n",
		"docs/design/2026.md": "`internal/gone.f`\n",
	})
	got, err := checkGoNames(".")
	want := "docs/b.md: there is no internal/b\ndocs/b.md: there is no internal/a.g\n" +
		"docs/b.md: there is no internal/a.T.N\ndocs/b.md: there is no internal/a/b.go\n" +
		"docs/b.md: there is no internal/a.inTest"
	if err != nil || strings.Join(got, "\n") != want {
		t.Errorf("complaints %q, %v", got, err)
	}
}

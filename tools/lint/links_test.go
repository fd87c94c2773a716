package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLinksThatLeadNowhereAreTold(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{
		"a.md": "# One\n\n[b](docs/b.md#two-three), [gone](docs/c.md), [web](https://example.com/x.md#y), " +
			"`[code](no.md)`, [here](#one), [not here](#two)\n\n```\n[code](no.md)\n```\n",
		"docs/b.md": "## Two: `three`\n\n[a](../a.md) [a](../a.md#one) [a](../a.md#four)\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := checkLinks(root)
	want := []string{"a.md: docs/c.md: there is no such file", "a.md: #two: there is no such heading",
		"docs/b.md: ../a.md#four: there is no such heading"}
	if err != nil || strings.ReplaceAll(strings.Join(got, "\n"), filepath.ToSlash(root)+"/",
		"") != strings.Join(want, "\n") {
		t.Errorf("told %q, %v", got, err)
	}
}

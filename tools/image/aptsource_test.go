package main

import (
	"testing"
	"testing/fstest"
)

func file(content string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(content)} }

func TestMirrorIsWhereTheMachineTakesDebianFrom(t *testing.T) {
	release := file("ID=debian\nVERSION_CODENAME=bookworm\n")
	for name, tc := range map[string]struct {
		files fstest.MapFS
		want  string
	}{
		"deb822, with comments and a security stanza": {fstest.MapFS{
			"etc/apt/sources.list.d/debian.sources": file("Types: deb\nURIs: " +
				"http://mirror.example/debian-security\nSuites: bookworm-security\n" +
				"Components: main\n\nTypes: deb deb-src\n# a comment\nURIs: http://mirror.example/debian\n" +
				"Suites: bookworm\n bookworm-updates\nComponents: main\n"),
		}, "http://mirror.example/debian"},
		"one line, with options": {fstest.MapFS{
			"etc/apt/sources.list": file("# old\ndeb [arch=amd64 signed-by=/k.gpg] https://near.example/debian/ " +
				"bookworm main contrib # here\n"),
		}, "https://near.example/debian/"},
		"third parties are passed over": {fstest.MapFS{
			"etc/apt/sources.list.d/a.list": file("deb https://vendor.example/linux/debian bookworm stable\ndeb " +
				"https://tools.example/apt tools-bookworm main\n"),
			"etc/apt/sources.list.d/b.sources": file("Types: deb\nURIs: https://node.example/node\nSuites: " +
				"nodistro\nComponents: main\n"),
		}, ""},
		"switched off": {fstest.MapFS{
			"etc/apt/sources.list.d/a.sources": file("Enabled: no\nTypes: deb\nURIs: " +
				"http://mirror.example/debian\nSuites: bookworm\nComponents: main\n"),
		}, ""},
		"nothing there": {fstest.MapFS{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.files["etc/os-release"] = release
			if got := debianMirror(tc.files); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

package main

import (
	"bufio"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"
)

// aptSource is one line of a sources.list, or one stanza of a .sources file.
type aptSource struct {
	Types, URIs, Suites, Components []string
}

// debianMirror is the address from which this machine's apt takes Debian itself, or "" if that
// cannot be told. The machine may reach no other, and it may be the only one near.
func debianMirror(root fs.FS) string {
	codename := osRelease(root)["VERSION_CODENAME"]
	for _, source := range aptSources(root) {
		if !slices.Contains(source.Types, "deb") || !slices.Contains(source.Components, "main") ||
			!source.hasSuite(codename) {
			continue
		}
		for _, uri := range source.URIs {
			if isDebianArchive(uri) {
				return uri
			}
		}
	}
	return ""
}

// hasSuite tells Debian's own suites from those of third parties and from the security archive, which has no sid.
func (s aptSource) hasSuite(codename string) bool {
	return slices.ContainsFunc(s.Suites, func(suite string) bool {
		return suite == codename && suite != "" ||
			slices.Contains([]string{"sid", "unstable", "testing", "stable"}, suite)
	})
}

func isDebianArchive(uri string) bool {
	parsed, err := url.Parse(uri)
	return err == nil && parsed.Scheme != "" && slices.Contains(strings.Split(parsed.Path, "/"), "debian")
}

func aptSources(root fs.FS) []aptSource {
	var sources []aptSource
	for _, pattern := range []string{"etc/apt/sources.list", "etc/apt/sources.list.d/*.list",
		"etc/apt/sources.list.d/*.sources"} {
		names, _ := fs.Glob(root, pattern) // only a malformed pattern fails
		for _, name := range names {
			content, err := fs.ReadFile(root, name)
			if err != nil {
				continue // unreadable to us is unusable to us; mmdebstrap's default remains
			}
			if path.Ext(name) == ".sources" {
				sources = append(sources, parseStanzas(string(content))...)
			} else {
				sources = append(sources, parseLines(string(content))...)
			}
		}
	}
	return sources
}

// parseLines reads the form "deb [options] uri suite component...".
func parseLines(content string) []aptSource {
	var sources []aptSource
	for line := range strings.Lines(content) {
		line, _, _ = strings.Cut(line, "#")
		if before, after, ok := strings.Cut(line, "["); ok {
			_, after, _ = strings.Cut(after, "]")
			line = before + after
		}
		if f := strings.Fields(line); len(f) >= 4 {
			sources = append(sources, aptSource{Types: f[:1], URIs: f[1:2], Suites: f[2:3], Components: f[3:]})
		}
	}
	return sources
}

// parseStanzas reads the deb822 form: fields, stanzas parted by empty lines, comment lines with # in the first column.
func parseStanzas(content string) []aptSource {
	var sources []aptSource
	fields := map[string][]string{}
	last := ""
	flush := func() {
		if len(fields) > 0 && !slices.Equal(fields["enabled"], []string{"no"}) {
			sources = append(sources, aptSource{fields["types"], fields["uris"], fields["suites"],
				fields["components"]})
		}
		fields, last = map[string][]string{}, ""
	}
	for scan := bufio.NewScanner(strings.NewReader(content)); scan.Scan(); {
		line := scan.Text()
		name, value, named := strings.Cut(line, ":")
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(line) == "":
			flush()
		case line[0] == ' ' || line[0] == '\t':
			fields[last] = append(fields[last], strings.Fields(line)...)
		case named:
			last = strings.ToLower(name)
			fields[last] = strings.Fields(value)
		}
	}
	flush()
	return sources
}

func osRelease(root fs.FS) map[string]string {
	values := map[string]string{}
	content, err := fs.ReadFile(root, "etc/os-release")
	if err != nil {
		return values
	}
	for line := range strings.Lines(string(content)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			values[key] = strings.Trim(value, `"'`)
		}
	}
	return values
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	fenced  = regexp.MustCompile("(?s)```.*?```")
	inCode  = regexp.MustCompile("`[^`\n]*`")
)

// checkLinks complains of links in documents that lead to no file, or to no heading in it.
func checkLinks(root string) (complaints []string, err error) {
	err = eachFile(root, ".md", func(path, text string) {
		text = inCode.ReplaceAllString(fenced.ReplaceAllString(text, ""), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if why := dead(path, m[1]); why != "" {
				complaints = append(complaints, fmt.Sprintf("%s: %s: %s", path, m[1], why))
			}
		}
	})
	return complaints, err
}

// dead tells why a link leads nowhere; "" when it leads somewhere, or out of the
// repository.
func dead(from, to string) string {
	if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
		return ""
	}
	file, anchor, _ := strings.Cut(to, "#")
	target := from
	if file != "" {
		target = filepath.Join(filepath.Dir(from), file)
	}
	info, err := os.Stat(target)
	if err != nil {
		return "there is no such file"
	}
	if anchor == "" || info.IsDir() || !strings.HasSuffix(target, ".md") {
		return ""
	}
	text, err := os.ReadFile(target)
	if err != nil {
		return err.Error()
	}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(string(text), ""), -1) {
		if anchorOf(m[1]) == anchor {
			return ""
		}
	}
	return "there is no such heading"
}

// anchorOf is the name that a heading gets on GitHub.
func anchorOf(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

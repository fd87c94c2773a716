package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	namedTest = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)(?:/([A-Za-z0-9]+))?`")
	aTest     = regexp.MustCompile(`(?m)^func (Test[A-Z][A-Za-z0-9]*)\(`)
)

// checkNamed complains of tests that the documents name and that do not exist, and of
// their steps.
func checkNamed(root string) (complaints []string, err error) {
	tests, steps := map[string]bool{}, map[string]bool{}
	quoted := regexp.MustCompile(`"([A-Za-z0-9]+)"`)
	err = eachFile(root, "_test.go", func(_, text string) {
		for _, m := range aTest.FindAllStringSubmatch(text, -1) {
			tests[m[1]] = true
		}
		for _, m := range quoted.FindAllStringSubmatch(text, -1) {
			steps[m[1]] = true
		}
	})
	if err != nil {
		return nil, err
	}
	err = eachFile(filepath.Join(root, "docs"), ".md", func(path, text string) {
		for _, m := range namedTest.FindAllStringSubmatch(text, -1) {
			if !tests[m[1]] || m[2] != "" && !steps[m[2]] {
				complaints = append(complaints, fmt.Sprintf("%s: there is no test %s", path, strings.Trim(m[0], "`")))
			}
		}
	})
	return complaints, err
}

func eachFile(root, suffix string, visit func(path, text string)) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, suffix) {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil {
			visit(filepath.ToSlash(path), string(text))
		}
		return err
	})
}

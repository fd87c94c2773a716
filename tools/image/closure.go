package main

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// closure finds the shared libraries that programs under one root need, directly or through others.
// Reading the ELF headers, rather than asking ldd, runs nothing of the tree and works for another architecture.
type closure struct {
	root  string
	dirs  []string
	found map[string]bool // paths relative to root
}

func newClosure(root string) (*closure, error) {
	c := &closure{root: root, found: map[string]bool{}}
	for _, pattern := range []string{"usr/lib/*-linux-gnu*", "usr/lib", "lib/*-linux-gnu*", "lib"} {
		dirs, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		c.dirs = append(c.dirs, dirs...)
	}
	return c, nil
}

// add takes a program or library, relative to the root, and everything it needs.
func (c *closure) add(path string) error {
	file, err := elf.Open(filepath.Join(c.root, path))
	if err != nil {
		return fmt.Errorf("read which libraries %s needs: %w", path, err)
	}
	defer file.Close()
	needed, err := file.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("read which libraries %s needs: %w", path, err)
	}
	for _, library := range needed {
		if err := c.addByName(library, path); err != nil {
			return err
		}
	}
	return c.addLoader(file, path)
}

func (c *closure) addByName(library, neededBy string) error {
	for _, dir := range c.dirs {
		path := filepath.Join(dir, library)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		relative, err := filepath.Rel(c.root, path)
		if err != nil || c.found[relative] {
			return err
		}
		c.found[relative] = true
		return c.add(relative)
	}
	return fmt.Errorf("%s needs the library %s, which is not in %s; a package is missing from the recipe, or Debian "+
		"moved the file",
		neededBy, library, strings.Join(c.dirs, ", "))
}

// addLoader takes the dynamic loader under the path that the program names. In Debian /lib64 is a
// link to /usr/lib64, which only base-files brings; the recipe has the link itself.
func (c *closure) addLoader(file *elf.File, path string) error {
	section := file.Section(".interp")
	if section == nil {
		return nil
	}
	name, err := section.Data()
	if err != nil {
		return fmt.Errorf("read which loader %s needs: %w", path, err)
	}
	loader := filepath.Join("usr", strings.TrimRight(string(name), "\x00"))
	if _, err := os.Stat(filepath.Join(c.root, loader)); err != nil {
		return fmt.Errorf("%s needs the loader /%s: %w", path, loader, err)
	}
	c.found[loader] = true
	return nil
}

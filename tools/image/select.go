package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// selectFiles makes the small tree "to" out of the unpacked packages in "from". Only what the
// recipe names, and the libraries that it needs, is taken; the rest (perl, documents, shells,
// apt) is never seen.
func selectFiles(r recipe, from, to string) error {
	paths, err := wantedPaths(r, from)
	if err != nil {
		return err
	}
	for _, d := range r.Directories {
		if err := makeDirectory(to, d); err != nil {
			return err
		}
	}
	for _, p := range paths {
		if err := take(from, to, p); err != nil {
			return err
		}
	}
	for _, t := range r.Texts {
		if err := writeText(to, t); err != nil {
			return err
		}
	}
	for _, l := range r.Links {
		if err := makeLink(to, l); err != nil {
			return err
		}
	}
	return writeCertificates(from, to)
}

func wantedPaths(r recipe, from string) ([]string, error) {
	paths := slices.Clone(r.Programs)
	for _, pattern := range r.Globs {
		found, err := filepath.Glob(filepath.Join(from, pattern))
		if err != nil || len(found) == 0 {
			return nil, fmt.Errorf("nothing in the packages is like %s (%v); Debian moved it, and the recipe "+
				"(tools/image/recipe.go) must follow",
				pattern, err)
		}
		for _, f := range found {
			if !without(r, f) {
				paths = append(paths, f[len(from)+1:])
			}
		}
	}
	libraries, err := libraryPaths(r, from, paths)
	return append(paths, libraries...), err
}

func without(r recipe, file string) bool {
	return slices.ContainsFunc(r.Without, func(pattern string) bool {
		match, _ := path.Match(pattern, path.Base(file))
		return match
	})
}

func libraryPaths(r recipe, from string, paths []string) ([]string, error) {
	c, err := newClosure(from)
	if err != nil {
		return nil, err
	}
	for _, p := range paths {
		if !slices.Contains(r.Programs, p) && path.Ext(p) != ".so" {
			continue
		}
		if err := c.add(p); err != nil {
			return nil, err
		}
	}
	for _, name := range r.LoadedByName {
		if err := c.addByName(name, "looking up names"); err != nil {
			return nil, err
		}
	}
	var libraries []string
	for p := range c.found {
		libraries = append(libraries, p)
	}
	return libraries, nil
}

// take links rather than copies (both trees are in the cache), under the name that is asked for:
// a library is looked up by its soname, so the versioned name behind it is not needed.
func take(from, to, name string) error {
	source, err := filepath.EvalSymlinks(filepath.Join(from, name))
	if err != nil {
		return fmt.Errorf("take %s from the packages: %w", name, err)
	}
	if inside, err := filepath.Rel(from, source); err != nil || !filepath.IsLocal(inside) {
		return fmt.Errorf("take %s from the packages: it points out of them, to %s", name, source)
	}
	target := filepath.Join(to, name)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	return os.Link(source, target)
}

// makeDirectory sets mode and owner after making it, because the umask has a say in the making.
func makeDirectory(to string, d directory) error {
	p := filepath.Join(to, d.Path)
	if err := os.MkdirAll(p, 0o755); err != nil {
		return err
	}
	if err := os.Chown(p, d.Owner, d.Owner); err != nil {
		return err
	}
	return os.Chmod(p, d.Mode)
}

func writeText(to string, t text) error {
	p := filepath.Join(to, t.Path)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		return err
	}
	return os.WriteFile(p, []byte(t.Content), 0o644)
}

func makeLink(to string, l link) error {
	p := filepath.Join(to, l.Path)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		return err
	}
	return os.Symlink(l.Target, p)
}

// writeCertificates does what the ca-certificates package does when it is configured, which it is not here.
func writeCertificates(from, to string) error {
	files, err := fs.Glob(os.DirFS(from), "usr/share/ca-certificates/*/*.crt")
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no certificates in the ca-certificates package (%v)", err)
	}
	var bundle bytes.Buffer
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(from, f))
		if err != nil {
			return err
		}
		bundle.Write(append(bytes.TrimSpace(content), '\n'))
	}
	return writeText(to, text{"etc/ssl/certs/ca-certificates.crt", bundle.String()})
}

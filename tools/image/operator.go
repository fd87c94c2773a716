package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// operatorImage is the binary on an empty file system: with no shell, no libc and no package in
// it there is nothing to patch.
type operatorImage struct {
	Binary, Tag, Out string
	Files            []addedFile
}

type addedFile struct{ Source, Destination string }

func (o *operatorImage) addFile(value string) error {
	source, destination, ok := strings.Cut(value, ":")
	if !ok || source == "" || !path.IsAbs(destination) || path.Clean(destination) == "/" {
		return fmt.Errorf("%q is not SRC:DST with an absolute DST, as in testdata/a.yaml:/etc/a.yaml", value)
	}
	o.Files = append(o.Files, addedFile{source, path.Clean(destination)})
	return nil
}

func (o *operatorImage) build() (made, error) {
	architecture, err := staticArchitecture(o.Binary)
	if err != nil {
		return made{}, err
	}
	entries, err := o.entries()
	if err != nil {
		return made{}, err
	}
	layer, err := os.CreateTemp("", "operator-layer-*.tar")
	if err != nil {
		return made{}, err
	}
	defer os.Remove(layer.Name())
	defer layer.Close()
	if err := writeLayer(layer, entries); err != nil {
		return made{}, err
	}
	return image{
		Tag: o.Tag, Architecture: architecture, Layer: layer.Name(),
		Run: runConfig{User: "65532:65532", Entrypoint: []string{"/cnmsql"}, WorkingDir: "/"},
	}.write(o.Out)
}

// entries are the files with the directories above them, in path order. Modes are set here, not
// taken from disk: the umask of who built the binary must not change the digest. Of the disk's
// mode only "somebody may execute it" counts.
func (o *operatorImage) entries() ([]entry, error) {
	files := append([]addedFile{{o.Binary, "/cnmsql"}}, o.Files...)
	byPath := map[string]entry{}
	for _, f := range files {
		info, err := os.Stat(f.Source)
		if err != nil {
			return nil, fmt.Errorf("read a file for the operator's image: %w", err)
		}
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is not a regular file; name each file by itself", f.Source)
		}
		name := f.Destination[1:]
		if _, taken := byPath[name]; taken {
			return nil, fmt.Errorf("two files want to be %s in the image", f.Destination)
		}
		byPath[name] = entry{Path: name, Mode: plainMode(info.Mode()), Size: info.Size(), Source: f.Source}
	}
	for _, f := range files {
		for dir := path.Dir(f.Destination[1:]); dir != "."; dir = path.Dir(dir) {
			if e, taken := byPath[dir]; taken && !e.Mode.IsDir() {
				return nil, fmt.Errorf("%s would be inside %s, which is a file in the image", f.Destination, "/"+dir)
			}
			byPath[dir] = entry{Path: dir, Mode: fs.ModeDir | 0o755}
		}
	}
	entries := make([]entry, 0, len(byPath))
	for _, e := range byPath {
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.Path, b.Path) })
	return entries, nil
}

func plainMode(m fs.FileMode) fs.FileMode {
	if m&0o111 != 0 {
		return 0o755
	}
	return 0o644
}

// staticArchitecture refuses a binary that would not start on an empty file system; the
// container's own message for that ("no such file or directory", about a file that is there) has
// cost people hours.
func staticArchitecture(binary string) (string, error) {
	file, err := elf.Open(binary)
	var format *elf.FormatError
	switch {
	case errors.As(err, &format):
		return "", fmt.Errorf("%s is not a Linux binary (%w); build it with GOOS=linux CGO_ENABLED=0 go build",
			binary, err)
	case err != nil:
		return "", fmt.Errorf("read the operator's binary: %w; build it first", err)
	}
	defer file.Close()
	if slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return "", fmt.Errorf("%s needs a dynamic loader, and the image has none; build it with CGO_ENABLED=0",
			filepath.Base(binary))
	}
	switch file.Machine {
	case elf.EM_X86_64:
		return "amd64", nil
	case elf.EM_AARCH64:
		return "arm64", nil
	}
	return "", fmt.Errorf("%s is for %s; images are made for amd64 and arm64", binary, file.Machine)
}

package archive

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Summary is what localkube needs to know of an archive.
type Summary struct {
	Digest string   // of the whole file
	Names  []string // the images in it
}

// Summarize reads an archive of either form, docker-archive or OCI layout, plain
// or gzipped.
func Summarize(path string) (Summary, error) {
	s, err := summarize(path)
	if err != nil {
		return s, fmt.Errorf("reading image archive %s: %w", path, err)
	}
	if len(s.Names) == 0 {
		return s, fmt.Errorf("image archive %s names no image: save it with a tag (docker save NAME:TAG, skopeo copy "+
			"… docker-archive:FILE:NAME:TAG)", path)
	}
	return s, nil
}

func summarize(path string) (Summary, error) {
	f, err := os.Open(path)
	if err != nil {
		return Summary{}, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return Summary{}, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return Summary{}, err
	}
	names, err := imageNames(f)
	return Summary{Digest: hex.EncodeToString(h.Sum(nil)), Names: names}, err
}

// imageNames hands a plain file to the tar reader as it is, which then seeks
// over the layers.
func imageNames(f *os.File) ([]string, error) {
	magic, _ := bufio.NewReader(io.NewSectionReader(f, 0, 2)).Peek(2)
	if len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		unzipped, err := gzip.NewReader(f)
		if err != nil {
			return nil, err
		}
		return namesInTar(unzipped)
	}
	return namesInTar(f)
}

func namesInTar(r io.Reader) ([]string, error) {
	var names []string
	t := tar.NewReader(r)
	for {
		header, err := t.Next()
		if errors.Is(err, io.EOF) {
			return names, nil
		}
		if err != nil {
			return nil, err
		}
		var found []string
		switch header.Name {
		case "manifest.json":
			found, err = dockerNames(t)
		case "index.json":
			found, err = ociNames(t)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", header.Name, err)
		}
		names = append(names, found...)
	}
}

func dockerNames(r io.Reader) ([]string, error) {
	var entries []manifestEntry
	if err := json.NewDecoder(r).Decode(&entries); err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.RepoTags...)
	}
	return names, nil
}

func ociNames(r io.Reader) ([]string, error) {
	var index struct {
		Manifests []struct{ Annotations map[string]string }
	}
	if err := json.NewDecoder(r).Decode(&index); err != nil {
		return nil, err
	}
	var names []string
	for _, m := range index.Manifests {
		for _, key := range []string{"io.containerd.image.name", "org.opencontainers.image.ref.name"} {
			if name := m.Annotations[key]; name != "" {
				names = append(names, name)
				break
			}
		}
	}
	return names, nil
}

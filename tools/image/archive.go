package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// image is one layer, and how a container of it is run.
type image struct {
	Tag          string
	Architecture string
	Run          runConfig
	Layer        string // path of an uncompressed tar
}

// runConfig has the field names of the image specification.
type runConfig struct {
	User       string   `json:",omitempty"`
	Env        []string `json:",omitempty"`
	Entrypoint []string `json:",omitempty"`
	Cmd        []string `json:",omitempty"`
	WorkingDir string   `json:",omitempty"`
}

type imageConfig struct {
	Architecture string    `json:"architecture"`
	Created      string    `json:"created"`
	OS           string    `json:"os"`
	Config       runConfig `json:"config"`
	RootFS       rootFS    `json:"rootfs"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

type manifestItem struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// made tells what was written; its text is the command's output.
type made struct {
	Out, Tag, ID string
	Bytes        int64
}

func (m made) String() string {
	return fmt.Sprintf("%s: %s, %.1f MB, id sha256:%s", m.Out, m.Tag, float64(m.Bytes)/1e6, m.ID)
}

// write makes the archive under a temporary name first: a reader never sees half of it.
//
// The format is written here rather than by a library: it is three entries of a tar, and the
// layer stays uncompressed, which saves compressing it here and inflating it once for every node
// that imports it.
func (i image) write(out string) (made, error) {
	file, err := os.CreateTemp(filepath.Dir(out), filepath.Base(out)+".partial-*")
	if err != nil {
		return made{}, fmt.Errorf("write the image: %w; does the directory of --out exist?", err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	result, err := i.writeTo(file)
	if err != nil {
		return made{}, fmt.Errorf("write the image %s to %s: %w", i.Tag, file.Name(), err)
	}
	if err := finish(file, out); err != nil {
		return made{}, fmt.Errorf("write the image %s: %w", i.Tag, err)
	}
	result.Out = out
	return result, nil
}

func finish(file *os.File, out string) error {
	if err := file.Chmod(0o644); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), out)
}

func (i image) writeTo(file *os.File) (made, error) {
	layerHex, layerBytes, err := hashFile(i.Layer)
	if err != nil {
		return made{}, err
	}
	config, err := json.Marshal(i.config(layerHex))
	if err != nil {
		return made{}, err
	}
	sum := sha256.Sum256(config)
	id := hex.EncodeToString(sum[:])
	manifest, err := json.Marshal([]manifestItem{{
		Config: id + ".json", RepoTags: []string{i.Tag}, Layers: []string{layerHex + ".tar"},
	}})
	if err != nil {
		return made{}, err
	}
	out := tar.NewWriter(file)
	if err := putBytes(out, "manifest.json", manifest); err != nil {
		return made{}, err
	}
	if err := putBytes(out, id+".json", config); err != nil {
		return made{}, err
	}
	if err := putFile(out, layerHex+".tar", i.Layer, layerBytes); err != nil {
		return made{}, err
	}
	return made{Tag: i.Tag, ID: id, Bytes: layerBytes}, out.Close()
}

func (i image) config(layerHex string) imageConfig {
	return imageConfig{
		Architecture: i.Architecture, Created: epoch.UTC().Format("2006-01-02T15:04:05Z"), OS: "linux", Config: i.Run,
		RootFS: rootFS{Type: "layers", DiffIDs: []string{"sha256:" + layerHex}},
	}
}

func putBytes(out *tar.Writer, name string, content []byte) error {
	return put(out, name, bytes.NewReader(content), int64(len(content)))
}

func putFile(out *tar.Writer, name, path string, size int64) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	return put(out, name, in, size)
}

func put(out *tar.Writer, name string, content io.Reader, size int64) error {
	if err := out.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: size, ModTime: epoch}); err != nil {
		return err
	}
	_, err := io.Copy(out, content)
	return err
}

func hashFile(path string) (sum string, size int64, err error) {
	in, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer in.Close()
	hash := sha256.New()
	size, err = io.Copy(hash, in)
	return hex.EncodeToString(hash.Sum(nil)), size, err
}

package archive

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"runtime"
	"slices"
)

// Image is an image of one layer.
type Image struct {
	Name       string
	Entrypoint []string
	Files      map[string][]byte // by path without leading slash; all executable
}

// Write writes the image as a docker-archive.
func (i Image) Write(w io.Writer) error {
	layer, err := pack(i.Files)
	if err != nil {
		return err
	}
	diffID := digest(layer)
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": i.Entrypoint, "WorkingDir": "/"},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + diffID}},
	})
	if err != nil {
		return err
	}
	configName, layerName := digest(config)+".json", diffID+"/layer.tar"
	manifest, err := json.Marshal([]manifestEntry{{Config: configName, RepoTags: []string{i.Name},
		Layers: []string{layerName}}})
	if err != nil {
		return err
	}
	whole, err := pack(map[string][]byte{"manifest.json": manifest, configName: config, layerName: layer})
	if err != nil {
		return err
	}
	_, err = w.Write(whole)
	return err
}

type manifestEntry struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// pack sorts the files and sets no times, so that equal input has equal digests.
func pack(files map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	t := tar.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(files[name]))}); err != nil {
			return nil, err
		}
		if _, err := t.Write(files[name]); err != nil {
			return nil, err
		}
	}
	err := t.Close()
	return out.Bytes(), err
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

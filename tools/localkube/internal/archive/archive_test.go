package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func write(t *testing.T, data []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "image.tar")
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func example(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	image := Image{Name: "example.invalid/a:1", Entrypoint: []string{"/a"},
		Files: map[string][]byte{"a": []byte("program")}}
	if err := image.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestWrittenImageIsReadBack(t *testing.T) {
	s, err := Summarize(write(t, example(t)))
	if err != nil || !slices.Equal(s.Names, []string{"example.invalid/a:1"}) {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestSameContentHasSameDigest(t *testing.T) {
	if !bytes.Equal(example(t), example(t)) {
		t.Error("two archives of one image differ")
	}
}

func TestGzippedArchive(t *testing.T) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(example(t))
	w.Close()
	s, err := Summarize(write(t, out.Bytes()))
	if err != nil || len(s.Names) != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestOCILayout(t *testing.T) {
	index := `{"manifests":[{"annotations":{"io.containerd.image.name":"example.invalid/b:2",` +
		`"org.opencontainers.image.ref.name":"2"}}]}`
	data, err := pack(map[string][]byte{"index.json": []byte(index), "oci-layout": []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Summarize(write(t, data))
	if err != nil || !slices.Equal(s.Names, []string{"example.invalid/b:2"}) {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestArchiveWithoutNameIsRefused(t *testing.T) {
	var out bytes.Buffer
	tar.NewWriter(&out).Close()
	if _, err := Summarize(write(t, out.Bytes())); err == nil {
		t.Error("no error")
	}
}

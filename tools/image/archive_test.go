package main

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// staticBinary builds the smallest program there is: what is tested is the image, not the operator.
func staticBinary(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "main")
	mustWrite(t, source, "package main\n\nfunc main() {}\n")
	build := exec.Command("go", "build", "-o", binary, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}

func mustWrite(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readTar(t *testing.T, content []byte) (headers []tar.Header, files map[string][]byte) {
	t.Helper()
	files = map[string][]byte{}
	in := tar.NewReader(strings.NewReader(string(content)))
	for {
		h, err := in.Next()
		if err == io.EOF {
			return headers, files
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		headers, files[h.Name] = append(headers, *h), body
	}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestOperatorImageNamesItsPartsByTheirDigests(t *testing.T) {
	out := filepath.Join(t.TempDir(), "operator.tar")
	o := operatorImage{Binary: staticBinary(t), Tag: "localhost/cnmsql:dev", Out: out}
	if _, err := o.build(); err != nil {
		t.Fatal(err)
	}
	_, files := readTar(t, mustRead(t, out))
	var manifest []manifestItem
	if err := json.Unmarshal(files["manifest.json"], &manifest); err != nil {
		t.Fatal(err)
	}
	item := manifest[0]
	if item.RepoTags[0] != "localhost/cnmsql:dev" || item.Config != digest(files[item.Config])+".json" {
		t.Errorf("manifest %+v does not name the tag and the configuration's digest", item)
	}
	var config imageConfig
	if err := json.Unmarshal(files[item.Config], &config); err != nil {
		t.Fatal(err)
	}
	if got, want := config.RootFS.DiffIDs[0], "sha256:"+digest(files[item.Layers[0]]); got != want {
		t.Errorf("layer is called %s but is %s", got, want)
	}
	if config.Config.User != "65532:65532" || config.Config.Entrypoint[0] != "/cnmsql" {
		t.Errorf("runs as %q %q", config.Config.User, config.Config.Entrypoint)
	}
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func TestSameInputGivesSameOperatorImageWhateverTheTimesAndModes(t *testing.T) {
	binary, extra := staticBinary(t), filepath.Join(t.TempDir(), "LICENSE")
	mustWrite(t, extra, "free\n")
	build := func(name string) []byte {
		out := filepath.Join(t.TempDir(), name)
		o := operatorImage{Binary: binary, Tag: "x:1", Out: out}
		if err := o.addFile(extra + ":/licenses/LICENSE"); err != nil {
			t.Fatal(err)
		}
		if _, err := o.build(); err != nil {
			t.Fatal(err)
		}
		return mustRead(t, out)
	}
	first := build("a.tar")
	if err := os.Chtimes(binary, time.Now(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(binary, 0o700); err != nil {
		t.Fatal(err)
	}
	if second := build("b.tar"); digest(first) != digest(second) {
		t.Error("the archive changed with the time or the mode of the binary")
	}
}

func TestDynamicBinaryIsRefusedWithTheWayOut(t *testing.T) {
	o := operatorImage{Binary: "/bin/ls", Tag: "x:1", Out: filepath.Join(t.TempDir(), "x.tar")}
	if _, err := o.build(); err == nil || !strings.Contains(err.Error(), "CGO_ENABLED=0") {
		t.Errorf("got %v, want a refusal that names CGO_ENABLED=0", err)
	}
}

func TestFilesThatCannotBeInOneImageAreRefused(t *testing.T) {
	binary := staticBinary(t)
	for _, destination := range []string{"/cnmsql", "/cnmsql/inside"} {
		o := operatorImage{Binary: binary, Tag: "x:1", Out: filepath.Join(t.TempDir(), "x.tar")}
		if err := o.addFile(binary + ":" + destination); err != nil {
			t.Fatal(err)
		}
		if _, err := o.build(); err == nil {
			t.Errorf("a second file at %s was taken", destination)
		}
	}
	for _, bad := range []string{"a", ":/b", "a:b", "a:/"} {
		if err := new(operatorImage).addFile(bad); err == nil {
			t.Errorf("--file %q was taken", bad)
		}
	}
}

func TestLayerKeepsLinksStickyBitsAndOrder(t *testing.T) {
	root := t.TempDir()
	for _, d := range []directory{{"tmp", 0o777 | os.ModeSticky, os.Getuid()}, {"var", 0o755, os.Getuid()}} {
		if err := makeDirectory(root, d); err != nil {
			t.Fatal(err)
		}
	}
	if err := makeLink(root, link{"var/run", "../run"}); err != nil {
		t.Fatal(err)
	}
	entries, err := directoryEntries(root)
	if err != nil {
		t.Fatal(err)
	}
	var layer strings.Builder
	if err := writeLayer(&layer, entries); err != nil {
		t.Fatal(err)
	}
	headers, _ := readTar(t, []byte(layer.String()))
	if len(headers) != 3 || headers[0].Name != "tmp/" || headers[0].Mode != 0o1777 || headers[2].Linkname != "../run" {
		t.Errorf("got %+v", headers)
	}
	for _, h := range headers {
		if !h.ModTime.Equal(epoch) {
			t.Errorf("%s carries the time %s", h.Name, h.ModTime)
		}
	}
}

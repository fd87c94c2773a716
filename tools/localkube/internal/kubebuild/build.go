package kubebuild

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cnmsql.co/tools/localkube/internal/archive"
	"cnmsql.co/tools/localkube/internal/command"
	"cnmsql.co/tools/localkube/internal/registry"
)

// Version is the Kubernetes that is built; src/go.mod.txt requires the same.
const Version = "v1.36.3"

// PauseImage is the name of the sandbox image.
const PauseImage = "localkube.invalid/pause:1"

const binary = "localkube-kube"

//go:embed src
var sources embed.FS

// components are the names the binary answers to.
var components = []string{
	"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler",
	"kubelet", "kube-proxy", "kubectl", "coredns", "localkube-provisioner",
}

// Build is one built Kubernetes.
type Build struct{ dir string }

// Component is the path of one component, kubectl among them.
func (b Build) Component(name string) string { return filepath.Join(b.dir, "bin", name) }

// PauseArchive is the sandbox image of every Pod.
func (b Build) PauseArchive() string { return filepath.Join(b.dir, "pause.tar") }

// DefaultCache is where builds are kept: outside of any cluster and any checkout.
func DefaultCache() string {
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "localkube")
	}
	return "/var/cache/localkube"
}

// Find tells whether Kubernetes has been built already.
func Find(cache string) (Build, bool) {
	b := Build{filepath.Join(cache, Version+"-"+fingerprint())}
	_, err := os.Lstat(b.Component(components[len(components)-1]))
	return b, err == nil
}

// Ensure builds Kubernetes unless the cache has it. The links are made last, so
// that a build which was interrupted is not taken for a whole one.
func Ensure(ctx context.Context, cache string) (Build, error) {
	b, _ := Find(cache)
	if err := os.MkdirAll(filepath.Join(b.dir, "bin"), 0o755); err != nil {
		return b, fmt.Errorf("making the cache: %w", err)
	}
	unlock, err := registry.Lock(filepath.Join(b.dir, "lock"))
	if err != nil {
		return b, err
	}
	defer unlock()
	if _, ok := Find(cache); ok {
		return b, nil
	}
	if err := b.writeSources(); err != nil {
		return b, fmt.Errorf("writing the sources of Kubernetes to %s: %w", b.dir, err)
	}
	if err := b.compile(ctx); err != nil {
		return b, err
	}
	if err := b.writePause(); err != nil {
		return b, err
	}
	return b, b.link()
}

// fingerprint changes with the sources and with how they are built.
func fingerprint() string {
	h := sha256.New()
	fmt.Fprintln(h, buildArgs("out", "."))
	fs.WalkDir(sources, "src", func(path string, d fs.DirEntry, _ error) error {
		if data, err := sources.ReadFile(path); err == nil {
			fmt.Fprintln(h, path, len(data))
			h.Write(data)
		}
		return nil
	})
	return hex.EncodeToString(h.Sum(nil))[:12]
}

func (b Build) writeSources() error {
	return fs.WalkDir(sources, "src", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := sources.ReadFile(path)
		if err != nil {
			return err
		}
		file := filepath.Join(b.dir, strings.TrimSuffix(path, ".txt"))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		return os.WriteFile(file, data, 0o644)
	})
}

func (b Build) compile(ctx context.Context) error {
	for out, pkg := range map[string]string{binary: ".", "pause": "./pause"} {
		_, err := command.Command{
			Argv: buildArgs(filepath.Join(b.dir, "bin", out), pkg),
			Dir:  filepath.Join(b.dir, "src"),
			// The caller's workspace and flags are for the caller's module.
			Env: []string{"CGO_ENABLED=0", "GOWORK=off", "GOFLAGS="},
			Advice: "the build needs the Go toolchain, the Go module proxy, 4 GiB of memory and 6 GiB of disk; " +
				"repeat `localkube build`, it continues where it stopped",
		}.Run(ctx)
		if err != nil {
			return err
		}
	}
	return nil
}

// writePause packs the sandbox image: there is no registry to pull it from.
func (b Build) writePause() error {
	program, err := os.ReadFile(filepath.Join(b.dir, "bin", "pause"))
	if err != nil {
		return err
	}
	var archived bytes.Buffer
	image := archive.Image{Name: PauseImage, Entrypoint: []string{"/pause"}, Files: map[string][]byte{"pause": program}}
	if err := image.Write(&archived); err != nil {
		return fmt.Errorf("packing the pause image: %w", err)
	}
	return os.WriteFile(b.PauseArchive(), archived.Bytes(), 0o644)
}

// buildArgs sets the version, or nodes would report v0.0.0 and kubectl refuse
// to talk about skew.
func buildArgs(out, pkg string) []string {
	parts := strings.Split(strings.TrimPrefix(Version, "v"), ".")
	const where = "k8s.io/component-base/version."
	flags := []string{"-s", "-w",
		"-X", where + "gitVersion=" + Version,
		"-X", where + "gitMajor=" + parts[0],
		"-X", where + "gitMinor=" + parts[1],
		"-X", "k8s.io/client-go/pkg/version.gitVersion=" + Version,
	}
	return []string{"go", "build", "-trimpath", "-buildvcs=false", "-ldflags", strings.Join(flags, " "), "-o", out, pkg}
}

func (b Build) link() error {
	for _, name := range components {
		link := b.Component(name)
		os.Remove(link)
		if err := os.Symlink(binary, link); err != nil {
			return fmt.Errorf("naming a component: %w", err)
		}
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// extractPackages unpacks the recipe's packages and what they depend on into dir, which must not
// exist yet. Nothing is configured: no maintainer script runs, so neither a shell nor dpkg is
// needed in the tree.
func extractPackages(ctx context.Context, r recipe, dir string, progress io.Writer) error {
	if err := ensureMmdebstrap(ctx, progress); err != nil {
		return err
	}
	mirror := debianMirror(os.DirFS("/"))
	if _, err := mmdebstrap(r, dir, mirror).run(ctx, progress); err != nil {
		return err
	}
	for _, path := range r.Debs {
		if err := extractDeb(ctx, mirror, path, dir, progress); err != nil {
			return err
		}
	}
	return nil
}

// extractDeb unpacks one package of the mirror beside the others.
func extractDeb(ctx context.Context, mirror, path, dir string, progress io.Writer) error {
	if mirror == "" {
		return errors.New("this machine's apt sources name no mirror of Debian to take " + path + " from; add one")
	}
	file := filepath.Join(filepath.Dir(dir), filepath.Base(path))
	if err := download(ctx, strings.TrimSuffix(mirror, "/")+"/"+path, file, progress); err != nil {
		return fmt.Errorf("%w; if Debian's mirrors do not keep this package any more, its release can be tried no "+
			"more: take it out of the recipes (tools/image/recipe.go)", err)
	}
	_, err := command{Argv: []string{"dpkg-deb", "--extract", file, dir}, Advice: "remove the cache and try again: " +
		"the download may be damaged"}.run(ctx, progress)
	return err
}

func download(ctx context.Context, from, to string, progress io.Writer) error {
	fmt.Fprintln(progress, "+ download", from)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("download %s: %s", from, answer.Status)
	}
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, answer.Body); err != nil {
		file.Close()
		return fmt.Errorf("download %s: %w", from, err)
	}
	return file.Close()
}

func mmdebstrap(r recipe, dir, mirror string) command {
	argv := []string{
		"mmdebstrap", "--quiet", "--variant=extract",
		// A mirror's Release file can be past its date, and sid is only ever as old as the mirror.
		`--aptopt=Acquire::Check-Valid-Until "false"`,
	}
	for _, p := range r.Packages {
		argv = append(argv, "--include="+p)
	}
	argv = append(argv, r.Suite, dir)
	if mirror != "" {
		argv = append(argv, mirror)
	}
	return command{
		Argv: argv,
		Advice: "see whether `apt-get update` works on this machine; the mirror is the one in its apt sources. If a " +
			"package is gone " +
			"from " + r.Suite + ", its new name belongs into the recipe (tools/image/recipe.go)",
	}
}

func ensureMmdebstrap(ctx context.Context, progress io.Writer) error {
	if _, err := exec.LookPath("mmdebstrap"); err == nil {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("neither mmdebstrap nor apt-get is here; the MySQL image is made from Debian packages, so " +
			"make it on Debian " +
			"or use any official MySQL image instead")
	}
	install := command{
		Argv: []string{"apt-get", "install", "--yes", "--no-install-recommends", "mmdebstrap",
			"debian-archive-keyring"},
		Env: []string{"DEBIAN_FRONTEND=noninteractive"},
		Advice: "run `apt-get update` and try again; or install mmdebstrap by hand. If another apt-get holds the " +
			"lock, wait until " +
			"it has ended",
	}
	_, err := install.run(ctx, progress)
	return err
}

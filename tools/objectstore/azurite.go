package main

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// azurite names Azurite and all that it needs, with their versions and checksums. Later
// versions want a Node.js that Debian 12 does not have.
//
//go:embed azurite/package.json azurite/package-lock.json
var azurite embed.FS

// installAzurite gives the path of the server's program, which is installed unless it is there.
// It is JavaScript: npm installs it, and Node.js runs it.
func installAzurite(ctx context.Context) (string, error) {
	locked, err := azurite.ReadFile("azurite/package-lock.json")
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(locked)
	home := filepath.Join(cache(), "objectstore")
	dir := filepath.Join(home, "azurite-"+hex.EncodeToString(sum[:6]))
	program := filepath.Join(dir, "node_modules", ".bin", "azurite-blob")
	if err := os.MkdirAll(home, 0o755); err != nil {
		return "", fmt.Errorf("making the cache: %w", err)
	}
	unlock, err := lock(dir + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	// Its name comes last, so that an installation which was interrupted is not taken for a whole one.
	if err := install(ctx, dir+".new"); err != nil {
		return "", err
	}
	return program, os.Rename(dir+".new", dir)
}

// install has npm install into dir what azurite names, and run nothing of it.
func install(ctx context.Context, dir string) error {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return errors.New("there is no npm, which installs Azurite (Debian: apt-get install nodejs npm)")
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := azurite.ReadFile("azurite/" + name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("npm ci in %s: %w", dir, err)
	}
	return nil
}

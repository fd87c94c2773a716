package version

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
)

// Platform is what this binary runs on, as GOOS/GOARCH.
const Platform = runtime.GOOS + "/" + runtime.GOARCH

// Digest is the SHA-256 of the running binary's file, in hexadecimal digits. It is read
// once.
var Digest = sync.OnceValues(func() (string, error) {
	self, err := Open()
	if err != nil {
		return "", err
	}
	defer func() { _ = self.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, self); err != nil {
		return "", fmt.Errorf("reading the running binary: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
})

// Open opens the file of the running binary, whatever has its name by now.
func Open() (*os.File, error) {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, fmt.Errorf("opening the running binary: %w", err)
	}
	return self, nil
}

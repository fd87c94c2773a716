package instance

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"cnmsql.co/internal/version"
)

// CopySelf copies the running binary into a directory, where the main container
// finds it: the MySQL image is used as it is.
func CopySelf(dir string) error {
	in, err := version.Open()
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	to := filepath.Join(dir, "cnmsql")
	out, err := os.OpenFile(to+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return fmt.Errorf("installing the manager into %s: %w", dir, err)
	}
	if _, err := io.Copy(out, in); err != nil {
		_ = out.Close()
		return fmt.Errorf("installing the manager into %s: %w", dir, err)
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("installing the manager into %s: %w", dir, err)
	}
	return os.Rename(to+".new", to)
}

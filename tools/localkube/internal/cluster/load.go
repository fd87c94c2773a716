package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"cnmsql.co/tools/localkube/internal/archive"
	"cnmsql.co/tools/localkube/internal/command"
	"cnmsql.co/tools/localkube/internal/layout"
)

// Load imports an image archive on all nodes at once.
func (c *Cluster) Load(ctx context.Context, file string) error {
	summary, err := archive.Summarize(file)
	if err != nil {
		return err
	}
	return c.step("loaded "+strings.Join(summary.Names, ", "), func() error {
		return c.onAllNodes(func(n layout.Node) error { return c.loadSummarized(ctx, n, file, summary) })
	})
}

func (c *Cluster) loadOn(ctx context.Context, n layout.Node, file string) error {
	summary, err := archive.Summarize(file)
	if err != nil {
		return err
	}
	return c.loadSummarized(ctx, n, file, summary)
}

// loadSummarized skips an archive whose images the node got from the same bytes
// last. The stamps are by image, not by archive: another archive may have taken
// over the name since.
func (c *Cluster) loadSummarized(ctx context.Context, n layout.Node, file string, summary archive.Summary) error {
	if loaded(n, summary) {
		return nil
	}
	_, err := command.Command{
		Argv: []string{"ctr", "--address", n.Socket(), "--namespace", "k8s.io", "images", "import", file},
		Advice: fmt.Sprintf("if %s does not run, `localkube up --name %s` starts it; its containerd logs to %s", n.Name,
			c.Name, c.containerd(n).LogFile),
	}.Run(ctx)
	if err != nil {
		return fmt.Errorf("loading %s on %s: %w", file, n.Name, err)
	}
	return stamp(n, summary)
}

func stampFile(n layout.Node, image string) string {
	return n.Path("loaded", strings.NewReplacer("/", "_", ":", "_").Replace(image))
}

func loaded(n layout.Node, s archive.Summary) bool {
	for _, name := range s.Names {
		digest, err := os.ReadFile(stampFile(n, name))
		if err != nil || string(digest) != s.Digest {
			return false
		}
	}
	return true
}

func stamp(n layout.Node, s archive.Summary) error {
	for _, name := range s.Names {
		file := stampFile(n, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(s.Digest), 0o644); err != nil {
			return err
		}
	}
	return nil
}

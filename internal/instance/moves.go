package instance

import (
	"context"
	"io/fs"
	"path/filepath"
	"strings"
	"time"
)

// movesLook is how often it is looked whether the data directory changes, while nothing else tells
// that an activity gets on. Each look asks for every file.
const movesLook = 10 * time.Second

// moves notes that what goes on gets on. It has nobody look: who decides looks all the time.
func (a *activities) moves() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.moved = time.Now()
}

// movedAt is when what goes on was last seen to get on.
func (a *activities) movedAt() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.moved
}

// watchFiles notes that an activity gets on as long as the files of the data directory change. On a
// volume that hangs it hangs as well, and then notes nothing.
func (a *activities) watchFiles(ctx context.Context) {
	before := printOf(a.data)
	tick := time.NewTicker(movesLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if time.Since(a.movedAt()) < movesLook {
			continue
		}
		if now := printOf(a.data); now != before && ctx.Err() == nil {
			before = now
			a.moves()
		}
	}
}

// footprint is what changes when anybody works on a data directory.
type footprint struct {
	files  int
	bytes  int64
	latest time.Time
}

// printOf is a directory's footprint. What cannot be looked at, for it may be gone by now, is left
// out; and so are logs, which grow by our asking.
func printOf(dir string) (p footprint) {
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || strings.HasSuffix(path, ".log") {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return nil
		}
		p.files, p.bytes = p.files+1, p.bytes+info.Size()
		if at := info.ModTime(); at.After(p.latest) {
			p.latest = at
		}
		return nil
	})
	return p
}

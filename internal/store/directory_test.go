package store_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

// inDirectory gives a store, and the directory that is its bucket.
func inDirectory(t *testing.T) (s store.Store, bucket string) {
	t.Helper()
	root := t.TempDir()
	bucket = filepath.Join(root, "bucket")
	must(t, os.Mkdir(bucket, 0o755))
	return open(t, storetest.Configure(t, store.Config{Endpoint: "file://" + root, Bucket: "bucket"}, nil)), bucket
}

func TestADirectoryThatIsNotThereIsNoBucket(t *testing.T) {
	s, bucket := inDirectory(t)
	must(t, os.Remove(bucket))
	for method, err := range everything(t.Context(), s) {
		if !errors.Is(err, store.NoBucket) || !strings.Contains(err.Error(), bucket) {
			t.Errorf("%s: %v", method, err)
		}
	}
	must(t, os.Mkdir(bucket, 0o755)) // mounted late
	must(t, s.Put(t.Context(), "key", nil))
}

func TestWhatIsBeingWrittenIsNotListed(t *testing.T) {
	s, bucket := inDirectory(t)
	temporary := filepath.Join(bucket, ".cnmsql-store-tmp")
	must(t, os.Mkdir(temporary, 0o755))
	for name, age := range map[string]time.Duration{"young": time.Minute, "old": 48 * time.Hour} {
		must(t, os.WriteFile(filepath.Join(temporary, name), nil, 0o600))
		must(t, os.Chtimes(filepath.Join(temporary, name), time.Time{}, time.Now().Add(-age)))
	}
	must(t, s.Put(t.Context(), "key", nil))
	mustFail(t, s.Create(t.Context(), "key", nil), store.Exists)
	same(t, keys(t, s, ""), []string{"key"})
	entries, err := os.ReadDir(temporary)
	must(t, err)
	if len(entries) != 1 || entries[0].Name() != "young" {
		t.Errorf("there are %v", entries)
	}
}

func TestALinkThatLeavesTheDirectoryIsNotFollowed(t *testing.T) {
	s, bucket := inDirectory(t)
	outside := t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "file"), []byte("secret"), 0o600))
	must(t, os.Symlink(outside, filepath.Join(bucket, "link")))
	if err := s.Put(t.Context(), "link/new", nil); err == nil {
		t.Error("it was written outside")
	}
	if _, err := s.Get(t.Context(), "link/file"); err == nil {
		t.Error("it was read outside")
	}
	same(t, keys(t, s, ""), []string(nil))
}

func TestAnObjectIsNoDirectory(t *testing.T) {
	s, _ := inDirectory(t)
	must(t, s.Put(t.Context(), "a", nil))
	mustFail(t, s.Put(t.Context(), "a/b", nil), store.Refused)
	must(t, s.Put(t.Context(), "c/d", nil))
	if err := s.Put(t.Context(), "c", nil); err == nil {
		t.Error("a directory was replaced by an object")
	}
	same(t, keys(t, s, ""), []string{"a", "c/d"})
}

func TestAFileSystemsErrorHasAReason(t *testing.T) {
	for err, why := range map[syscall.Errno]error{syscall.ENOSPC: store.Full, syscall.EDQUOT: store.Full,
		syscall.EROFS:  store.AccessDenied,
		syscall.EACCES: store.AccessDenied, syscall.EIO: store.Unavailable, syscall.ENOENT: store.NotFound} {
		mustFail(t, store.OfFile(&fs.PathError{Op: "write", Path: "p", Err: err}), why)
	}
}

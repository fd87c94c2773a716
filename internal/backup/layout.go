package backup

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// The names of objects, see docs/archive-layout.md.
const (
	fileIdentity = "identity.json"
	fileManifest = "manifest.json"
	dirBase      = "base"
	dirLog       = "log"
)

var (
	plainCluster = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)
	plainID      = regexp.MustCompile(`^[A-Za-z0-9][-A-Za-z0-9._]{0,126}$`)
	partName     = regexp.MustCompile(`^part-[0-9a-f]{8}-[0-9]{6,9}\.zst(\.age)?$`)
)

func identityKey(cluster string) string { return cluster + "/" + fileIdentity }

// basePrefix is below what all backups of a cluster lie, prefix below what one does.
func basePrefix(cluster string) string { return cluster + "/" + dirBase + "/" }
func prefix(cluster, id string) string { return basePrefix(cluster) + id + "/" }

// ManifestKey is where the manifest of a backup lies.
func ManifestKey(cluster, id string) string { return prefix(cluster, id) + fileManifest }

// LogPrefix is below what the archive of a cluster's binary logs lies.
func LogPrefix(cluster string) string { return cluster + "/" + dirLog + "/" }

// Known reports whether an object below a cluster's name is one that this package writes.
func Known(cluster, key string) bool {
	if key == identityKey(cluster) {
		return true
	}
	rest, below := strings.CutPrefix(key, basePrefix(cluster))
	id, name, nested := strings.Cut(rest, "/")
	return below && nested && plainID.MatchString(id) && (name == fileManifest || partName.MatchString(name))
}

// nameOf is the name of a part. Each attempt has a token of its own: an upload that was
// given up may still arrive later, and must not take the place of a part that counts. The
// name tells what undoes it.
func nameOf(token string, number int, sealed bool) string {
	name := fmt.Sprintf("part-%s-%06d.zst", token, number)
	if sealed {
		name += ".age"
	}
	return name
}

func newToken() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// NewID makes a name for a backup that begins now. Names sort by time.
func NewID(now time.Time) string { return now.UTC().Format("20060102T150405Z") + "-" + newToken() }

// checkNames refuses what cannot be part of a key.
func checkNames(cluster, id string) error {
	if !plainCluster.MatchString(cluster) {
		return fmt.Errorf("%q is no name of a cluster", cluster)
	}
	if !plainID.MatchString(id) {
		return fmt.Errorf("%q is no name of a backup: letters, digits, '-', '.' and '_' make one", id)
	}
	return nil
}

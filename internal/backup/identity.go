package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"cnmsql.co/internal/store"
)

// Identity is whose archive it is. It is written before anything else, once.
type Identity struct {
	Format int `json:"format"`
	// Cluster is also the directory in which all of it lies.
	Cluster   string    `json:"cluster"`
	Namespace string    `json:"namespace"`
	UID       string    `json:"uid"`
	CreatedAt time.Time `json:"createdAt"`
}

// maxIdentity is the longest identity that is read.
const maxIdentity = 64 << 10

// Claim makes an archive one's own, or finds that it is already. One of another cluster, or
// of one that had the same name before, is refused: ArchiveTaken.
func Claim(ctx context.Context, s store.Store, mine Identity) error {
	if err := checkNames(mine.Cluster, "any"); err != nil {
		return err
	}
	if mine.UID == "" {
		return errors.New("an archive is claimed for a cluster without UID")
	}
	mine.Format = format
	body, err := json.Marshal(mine)
	if err != nil {
		return err
	}
	err = s.Create(ctx, identityKey(mine.Cluster), append(body, '\n'))
	if !errors.Is(err, store.Exists) {
		return wrap(err, "claiming the archive %s", mine.Cluster)
	}
	found, err := Owner(ctx, s, mine.Cluster)
	if err != nil {
		return err
	}
	if found.UID != mine.UID {
		return refuse(ArchiveTaken, "the archive %s belongs to cluster %s of namespace %s with UID %s, since %s, and "+
			"this is %s of %s with %s",
			mine.Cluster, found.Cluster, found.Namespace, found.UID, found.CreatedAt.Format(time.RFC3339),
			mine.Cluster, mine.Namespace, mine.UID)
	}
	return nil
}

// Owner tells whose archive it is; store.NotFound if nobody's.
func Owner(ctx context.Context, s store.Store, cluster string) (Identity, error) {
	key := identityKey(cluster)
	data, err := read(ctx, s, key, maxIdentity)
	if err != nil {
		return Identity{}, fmt.Errorf("asking whose archive %s is: %w", cluster, err)
	}
	var found Identity
	if err := json.Unmarshal(data, &found); err != nil || found.UID == "" {
		return Identity{}, refuse(IdentityDamaged, "%s (%v)", key, err)
	}
	if found.Format != format {
		return Identity{}, refuse(FormatUnknown, "%s has format %d", key, found.Format)
	}
	return found, nil
}

// Disown removes the identity. The caller has removed what it was about.
func Disown(ctx context.Context, s store.Store, cluster string) error {
	return wrap(s.Delete(ctx, identityKey(cluster)), "removing whose archive %s is", cluster)
}

// wrap says what was tried, if it failed.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}

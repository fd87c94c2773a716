package alive

import (
	"context"
	"sync/atomic"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// EachAlone is a cache of which a controller waits for its own kinds alone, once it was filled for the first time.
// As it comes, each kind that a controller watches waits for all kinds of all controllers: a single one that cannot
// be listed, such as the Jobs of backups, kept failovers from beginning.
type EachAlone struct {
	cache.Cache
	filled atomic.Bool
}

// NewEachAlone makes one, as the manager wants it.
func NewEachAlone(conf *rest.Config, options cache.Options) (cache.Cache, error) {
	all, err := cache.New(conf, options)
	if err != nil {
		return nil, err
	}
	return &EachAlone{Cache: all}, nil
}

// WaitForCacheSync waits until the kinds that are known before the first controller starts have been read. Later a
// kind is waited for by whoever asks for its informer.
func (c *EachAlone) WaitForCacheSync(ctx context.Context) bool {
	if !c.filled.Load() && c.Cache.WaitForCacheSync(ctx) {
		c.filled.Store(true)
	}
	return c.filled.Load()
}

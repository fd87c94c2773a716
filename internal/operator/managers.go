package operator

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/version"
)

const (
	// replaceLimit bounds how long it may take to send a manager its successor, and
	// replaceAgain is the pause after it was sent or refused.
	replaceLimit = 2 * time.Minute
	replaceAgain = 5 * time.Second
)

// ownBinary tells which binary the operator runs, as soon as that is known.
func ownBinary(log logr.Logger) func() core.Binary {
	var known atomic.Pointer[core.Binary]
	go func() {
		digest, err := version.Digest()
		if err != nil {
			log.Error(err, "managers are not replaced in place")
			return
		}
		known.Store(&core.Binary{Digest: digest, Platform: version.Platform})
	}()
	return func() core.Binary {
		if b := known.Load(); b != nil {
			return *b
		}
		return core.Binary{}
	}
}

// managers sends instances the operator's own binary, beside all else: it is large, and
// decisions do not wait for it.
type managers struct {
	mu   sync.Mutex
	sent map[types.NamespacedName]*sending
}

// sending is the last binary that was sent to an instance.
type sending struct {
	ended time.Time // zero while it goes on
	err   error
}

func newManagers() *managers { return &managers{sent: map[types.NamespacedName]*sending{}} }

// replace begins to send the binary, unless that goes on already, and tells why it was
// not taken the last time.
func (m *managers) replace(s *Streams, instance types.NamespacedName) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var before error
	if last := m.sent[instance]; last != nil {
		if last.ended.IsZero() || time.Since(last.ended) < replaceAgain {
			return last.err
		}
		before = last.err
	}
	now := &sending{}
	m.sent[instance] = now
	go func() {
		err := s.ReplaceManager(instance)
		m.mu.Lock()
		defer m.mu.Unlock()
		now.ended, now.err = time.Now(), err
	}()
	return before
}

// ReplaceManager sends an instance the binary that this operator runs.
func (s *Streams) ReplaceManager(instance types.NamespacedName) error {
	st := s.stream(instance.Namespace, instance.Name)
	if st == nil {
		return errNoStream
	}
	digest, err := version.Digest()
	if err != nil {
		return err
	}
	binary, err := version.Open()
	if err != nil {
		return err
	}
	defer func() { _ = binary.Close() }()
	ctx, cancel := context.WithTimeout(s.ctx, replaceLimit)
	defer cancel()
	defer s.wake(st.cluster)
	return st.client.ReplaceManager(ctx, digest, binary)
}

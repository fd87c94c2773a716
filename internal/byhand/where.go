package byhand

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cnmsql.co/internal/recovery"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
)

// Where is what lies in a store, and what opens it.
type Where struct {
	// Store is a directory with store.json and the files of its credentials; Copy is one in
	// which the directory of the cluster lies, as it does in the store. One of the two is set.
	Store, Copy string
	// Cluster is the name in the store.
	Cluster string
	// Identity is a file of age's; "" if nothing is encrypted, or the key lies in Store.
	Identity string
	// Limit is bytes a second that are read at most; 0 is any number.
	Limit int64
}

func (w Where) open() (s store.Store, key seal.Key, err error) {
	switch {
	case w.Cluster == "":
		return nil, key, errors.New("give --cluster, the name of the cluster in the store")
	case w.Store != "" && w.Copy == "":
		if s, err = store.Open(w.Store); err == nil {
			key, err = seal.Read(w.Store)
		}
	case w.Copy != "" && w.Store == "":
		s, err = w.openCopy()
	default:
		return nil, key, errors.New("give either --copy, a directory that contains the cluster's directory, or " +
			"--store, a directory with store.json and the credentials")
	}
	if err == nil && w.Identity != "" {
		var text []byte
		if text, err = os.ReadFile(w.Identity); err == nil {
			key, err = seal.Parse(text)
		}
	}
	return store.Limited(s, w.Limit), key, err
}

func (w Where) openCopy() (store.Store, error) {
	dir, err := filepath.Abs(w.Copy)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, w.Cluster)); err != nil {
		return nil, fmt.Errorf("%s must contain the directory %s, as the store does: %w", w.Copy, w.Cluster, err)
	}
	return store.Directory(dir), nil
}

// flags repeat where the store is, for a command that is to be typed next.
func (w Where) flags() string {
	out := " --copy " + quoted(w.Copy)
	if w.Store != "" {
		out = " --store " + quoted(w.Store)
	}
	out += " --cluster " + quoted(w.Cluster)
	if w.Identity != "" {
		out += " --identity " + quoted(w.Identity)
	}
	return out
}

// targetFlags repeat a target.
func targetFlags(t recovery.Target) (out string) {
	if t.Immediate {
		out += " --immediate"
	}
	if !t.Time.IsZero() {
		out += " --time " + t.Time.Format(time.RFC3339Nano)
	}
	if t.GTID != "" {
		out += " --gtid " + t.GTID
	}
	if t.Exclusive {
		out += " --exclusive"
	}
	return out
}

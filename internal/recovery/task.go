// Package recovery is the contract between the operator, which knows the backup or the server that a
// Cluster is to begin with, and the manager that makes the data from it: one file beside those of the
// store or the server.
package recovery

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// FileTask is the file of a Task, beside the store's.
const FileTask = "recovery.json"

// Files by which one logs in to a Server: the password, the authority that its certificate is of, and the
// certificate and key that are shown to it, if it wants any.
const (
	FilePassword    = "server-password"
	FileAuthority   = "server-ca.crt"
	FileCertificate = "server-tls.crt"
	FileKey         = "server-tls.key"
)

// Task is the backup that is restored, or the server that is copied.
type Task struct {
	// Server is the one whose data are copied; a backup is restored when it is nil.
	Server *Server `json:"server,omitempty"`
	// Cluster is whose backup it is, by its name in the store.
	Cluster string `json:"cluster"`
	// Owner is the UID of the Cluster that it has to be a backup of; whose it is does not matter
	// when this is empty.
	Owner string `json:"owner,omitempty"`
	// BackupID is the backup's name there; the newest is restored when it is empty.
	BackupID string `json:"backupID,omitempty"`
	// Target is where to stop; all that was archived is replayed when nothing of it is set.
	Target Target `json:"target,omitzero"`
	// MaxBytesPerSecond from the store; 0 is any number.
	MaxBytesPerSecond int64 `json:"maxBytesPerSecond,omitempty"`
}

// Server is a running server that is none of the Cluster's instances.
type Server struct {
	// Name is that of spec.externalClusters.
	Name string `json:"name"`
	Host string `json:"host"`
	Port int    `json:"port"`
	User string `json:"user"`
	// AnyName takes a certificate that names another host, when the authority has signed it.
	AnyName bool `json:"anyName,omitempty"`
}

// Target is where a restore stops.
type Target struct {
	// Immediate: where the backup ends.
	Immediate bool `json:"immediate,omitempty"`
	// Time: what was committed then, or before, is restored.
	Time time.Time `json:"time,omitzero"`
	// GTID is a set: when all of it is restored; or, Exclusive, before the first of it.
	GTID      string `json:"gtid,omitempty"`
	Exclusive bool   `json:"exclusive,omitempty"`
}

// Encode is the file.
func (t Task) Encode() ([]byte, error) { return json.MarshalIndent(t, "", "  ") }

// Read reads a Task from the directory that has the store's files.
func Read(dir string) (Task, error) {
	var t Task
	text, err := os.ReadFile(filepath.Join(dir, FileTask))
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	if err != nil {
		return t, fmt.Errorf("reading what is to be restored: %w", err)
	}
	return t, nil
}

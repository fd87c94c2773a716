// Package backupjob is what runs in the Pod of a Backup's Job: it has one backup taken, and
// tells in the Backup's status how far it is and what came of it. It decides nothing about
// when, or of which instance.
package backupjob

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// FileTask is the file of a Task, beside the store's.
const FileTask = "task.json"

// Task is what a Job is to do, written down by the operator.
type Task struct {
	Namespace string `json:"namespace"`
	Backup    string `json:"backup"`
	BackupUID string `json:"backupUID"`
	// ID is the backup's name in the store.
	ID string `json:"id"`
	// Cluster whose data it is.
	Cluster        string    `json:"cluster"`
	ClusterUID     string    `json:"clusterUID"`
	ClusterCreated time.Time `json:"clusterCreated"`
	Epoch          int64     `json:"epoch"`
	// Instance is backed up, at host:port.
	Instance string `json:"instance"`
	Host     string `json:"host"`
	Port     int    `json:"port"`
	// Primary of the Cluster, at primaryHost:port, if it is another instance.
	Primary     string `json:"primary,omitempty"`
	PrimaryHost string `json:"primaryHost,omitempty"`
	// MaxBytesPerSecond to the store; 0 is any number.
	MaxBytesPerSecond int64 `json:"maxBytesPerSecond,omitempty"`
	// Uncompressed is a backup that is stored as it is.
	Uncompressed bool `json:"uncompressed,omitempty"`
	// Merges: small parts of the archive are merged afterwards. It is the Cluster's own store.
	Merges bool `json:"merges,omitempty"`
	// Retention is what to keep in the store afterwards; all when nil.
	Retention *Retention `json:"retention,omitempty"`
}

// Retention is how far back every moment stays restorable, and how many backups stay in any
// case.
type Retention struct {
	Window  time.Duration `json:"window"`
	Minimum int           `json:"minimum"`
}

// and is what stays by both: the longer window, and the larger number of backups; nil keeps all.
func (r *Retention) and(other *Retention) *Retention {
	if r == nil || other == nil {
		return nil
	}
	return &Retention{Window: max(r.Window, other.Window), Minimum: max(r.Minimum, other.Minimum)}
}

// readTask reads a Task from the directory that has the store's files.
func readTask(dir string) (Task, error) {
	var t Task
	text, err := os.ReadFile(filepath.Join(dir, FileTask))
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	if err != nil {
		return t, fmt.Errorf("reading what is to be backed up: %w", err)
	}
	return t, nil
}

package instance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/mysql"
)

// chosen is what a user chooses of mysqld's configuration.
type chosen struct {
	Parameters   map[string]string `json:"parameters,omitempty"`
	BinlogFormat string            `json:"binlogFormat,omitempty"`
}

func chosenBy(c *v1alpha1.Cluster) chosen {
	return chosen{maps.Clone(c.Spec.MySQL.Parameters), c.Spec.MySQL.BinlogFormat}
}

func (c chosen) isSame(other chosen) bool {
	return c.BinlogFormat == other.BinlogFormat && maps.Equal(c.Parameters, other.Parameters)
}

// acceptedFile keeps what mysqld served with last.
func (d Dirs) acceptedFile() string { return filepath.Join(d.Meta, "accepted.json") }

// attempt is what mysqld is started with, and what it was not started with, for it refuses that. A manager that took
// over a mysqld has made none.
type attempt struct {
	isMade  bool
	with    chosen
	refused chosen
	why     string
}

// prepareAccepted has mysqld started with what it served with last, where it refuses what the spec says now: a mistake
// in the spec must not keep an instance away that ends for another reason, nor one that is started to try it.
func (c *configurer) prepareAccepted(ctx context.Context, of *v1alpha1.Cluster, refusal error) error {
	var no *namedError
	if !errors.As(refusal, &no) || no.Reason != core.InstanceConfigRefused {
		return refusal
	}
	before, err := c.accepted()
	if err != nil {
		return errors.Join(refusal, err)
	}
	now := chosenBy(of)
	if before == nil || before.isSame(now) {
		return refusal
	}
	former := of.DeepCopy()
	former.Spec.MySQL.Parameters, former.Spec.MySQL.BinlogFormat = before.Parameters, before.BinlogFormat
	if err := c.writeConfig(former, mysql.ToServe); err != nil {
		return errors.Join(refusal, err)
	}
	if c.validate(ctx) != nil {
		return refusal
	}
	c.log.Warn("mysqld refuses parameters of the spec; it starts with the parameters with which it ran last",
		"error", no.Message)
	c.setAttempt(attempt{isMade: true, with: *before, refused: now, why: no.Message})
	return nil
}

// accepted is what mysqld served with last; nil where it has not served yet.
func (c *configurer) accepted() (*chosen, error) {
	text, err := os.ReadFile(c.opt.Dirs.acceptedFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out chosen
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		return nil, fmt.Errorf("reading what mysqld served with last: %w", err)
	}
	return &out, nil
}

// noteServes keeps what mysqld was started with, once it serves.
func (c *configurer) noteServes() {
	last := c.lastAttempt()
	if !last.isMade {
		return
	}
	if before, err := c.accepted(); err == nil && before != nil && before.isSame(last.with) {
		return
	}
	text, err := json.Marshal(last.with)
	if err == nil {
		err = writeDurably(c.opt.Dirs.acceptedFile(), text)
	}
	if err != nil {
		c.log.Warn("cannot record the parameters with which mysqld runs", "error", err)
	}
}

func (c *configurer) setAttempt(a attempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attempt = a
}

func (c *configurer) lastAttempt() attempt {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.attempt
}

// refuses is why mysqld was not started with what the spec says; "" where it was, or the spec says something else now.
func (c *configurer) refuses(now *v1alpha1.Cluster) string {
	a := c.lastAttempt()
	if a.why == "" || now == nil || !a.refused.isSame(chosenBy(now)) {
		return ""
	}
	return a.why
}

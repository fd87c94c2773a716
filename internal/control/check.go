package control

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/verify"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/printable"
)

// CheckOrder has an instance of a throw-away Cluster check its tables, or one of another
// Cluster sum some up.
type CheckOrder struct {
	// ID tells orders apart. One that is under way is not begun again.
	ID string `json:"id"`
	// Sums names tables whose rows are to be summed up besides.
	Sums []string `json:"sums,omitempty"`
	// Sample has some tables summed up, and nothing checked. It is for an instance that is in
	// use, of any Cluster, and reads a bounded amount.
	Sample bool `json:"sample,omitempty"`
}

// CheckReport is what came of the last order to check tables, or how far it is.
type CheckReport struct {
	// ID of the order; empty when there was none since the manager began.
	ID string `json:"id,omitempty"`
	// Done: it was carried out to its end. Error is why it could not be.
	Done  bool   `json:"done,omitempty"`
	Error string `json:"error,omitempty"`
	// Table is the one that is being checked, Checked how many were, of Tables.
	Table   string `json:"table,omitempty"`
	Checked int    `json:"checked"`
	Tables  int    `json:"tables"`
	// Damaged are those that are not as they should be, the first MaxListed of them.
	Damaged []CheckFinding `json:"damaged,omitempty"`
	// BackupID is the backup that the data were restored from, RestoredUntil when the last
	// transaction was committed that was restored, Executed what the server has executed.
	BackupID      string    `json:"backupId,omitempty"`
	RestoredUntil time.Time `json:"restoredUntil,omitzero"`
	Executed      gtid.Set  `json:"executed,omitzero"`
	// Sums are those that were asked for; a table that is not there has none. Sample is that
	// of an order for one.
	Sums   []verify.Sum   `json:"sums,omitempty"`
	Sample *verify.Sample `json:"sample,omitempty"`
}

// CheckFinding is what the server said of a table.
type CheckFinding struct {
	Table   string `json:"table"`
	Message string `json:"message"`
}

const (
	// MaxListed is how many damaged tables, and how many sums, a report may hold.
	MaxListed = 100
	// maxListedText bounds each text of theirs, in bytes. The name of a table has 513 at
	// most with that of its schema. They become part of a Cluster's status.
	maxListedText = 1 << 10
)

// Check begins to check tables, and returns how far that is. The error is a *Refusal when the
// manager said no.
func (c *Client) Check(ctx context.Context, o CheckOrder) (CheckReport, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return CheckReport{}, err
	}
	return c.check(ctx, http.MethodPost, bytes.NewReader(body))
}

// CheckReport asks how far the last check is. The error is a *Refusal when the manager said no.
func (c *Client) CheckReport(ctx context.Context) (CheckReport, error) {
	return c.check(ctx, http.MethodGet, nil)
}

func (c *Client) check(ctx context.Context, method string, body io.Reader) (out CheckReport, err error) {
	resp, err := c.do(ctx, c.http, method, PathCheck, body)
	if err != nil {
		return out, err
	}
	defer func() { _ = resp.Body.Close() }()
	said := newMessages(resp.Body)
	said.text = func(text string) string { return clip(text, maxText) } // a table goes by its very name
	if err = said.read(&out); err == nil {
		err = out.bound()
	}
	if err != nil {
		return CheckReport{}, fmt.Errorf("%s %s%s: reading the answer: %w", method, c.base, PathCheck, err)
	}
	return out, nil
}

// bound refuses lists that are too long, and shortens the texts in them. A sum that was left
// out would look like a table that is missing.
func (r *CheckReport) bound() error {
	r.Error, r.Table = printable.Text(r.Error), printable.Text(r.Table)
	eachText(reflect.ValueOf(r.Damaged), printable.Text)
	var sampled []verify.Sum
	if r.Sample != nil {
		sampled = r.Sample.Sums
	}
	for _, list := range []struct {
		of    string
		items any
	}{{"damaged tables", r.Damaged}, {"sums", r.Sums}, {"sums in a sample", sampled}} {
		items := reflect.ValueOf(list.items)
		if n := items.Len(); n > MaxListed {
			return fmt.Errorf("an instance tells of %d %s; %d at most are read", n, list.of, MaxListed)
		}
		eachText(items, func(text string) string { return clip(text, maxListedText) })
	}
	return nil
}

func startCheck(in Instance) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var o CheckOrder
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&o); err != nil {
			refuse(w, http.StatusBadRequest, &Refusal{Reason: core.ControlBadRequest, Message: err.Error()})
			return
		}
		answer(w, in.StartCheck(o), func() any { return in.CheckReport() })
	})
}

func checkReport(in Instance) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer(w, nil, func() any { return in.CheckReport() })
	})
}

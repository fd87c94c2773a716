package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/verify"
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
	// Damaged are those that are not as they should be, the first hundred of them.
	Damaged []CheckFinding `json:"damaged,omitempty"`
	// BackupID is the backup that the data were restored from, RestoredUntil when the last
	// transaction was committed that was restored, Executed what the server has executed.
	BackupID      string    `json:"backupId,omitempty"`
	RestoredUntil time.Time `json:"restoredUntil,omitzero"`
	Executed      string    `json:"executed,omitempty"`
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

// maxCheckReport is more than a report of a hundred findings has.
const maxCheckReport = 4 << 20

// Check begins to check tables, and returns how far that is. The error is a *Refusal when the
// manager said no.
func (c *Client) Check(ctx context.Context, o CheckOrder) (CheckReport, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return CheckReport{}, err
	}
	return c.check(ctx, http.MethodPost, bytes.NewReader(body))
}

// CheckReport asks how far the last check is.
func (c *Client) CheckReport(ctx context.Context) (CheckReport, error) {
	return c.check(ctx, http.MethodGet, nil)
}

func (c *Client) check(ctx context.Context, method string, body io.Reader) (out CheckReport, err error) {
	resp, err := c.do(ctx, method, PathCheck, body)
	if err != nil {
		return out, err
	}
	err = json.NewDecoder(io.LimitReader(resp.Body, maxCheckReport)).Decode(&out)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return out, fmt.Errorf("%s %s%s: reading the answer: %w", method, c.base, PathCheck, err)
	}
	return out, nil
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

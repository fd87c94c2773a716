package main

import (
	"time"

	"cnmsql.co/test/writer"
)

// summary is the JSON form: times in RFC 3339, lengths in milliseconds. Scripts read it, so names stay.
type summary struct {
	Run          string       `json:"run"`
	Started      time.Time    `json:"started"`
	Stopped      time.Time    `json:"stopped"`
	Acknowledged int          `json:"acknowledged"`
	Unknown      int          `json:"unknown"`
	Refused      int          `json:"refused"`
	Unconnected  int          `json:"unconnected"`
	LongestGap   gapJSON      `json:"longestGap"`
	Latency      latencyJSON  `json:"latencyMs"`
	Errors       []errorJSON  `json:"errors"`
	Verified     bool         `json:"verified"`
	VerifyError  string       `json:"verifyError,omitempty"`
	Rows         *rowsSummary `json:"rows,omitempty"`
}

type gapJSON struct {
	Ms    float64   `json:"ms"`
	Start time.Time `json:"start,omitzero"`
	End   time.Time `json:"end,omitzero"`
	Open  bool      `json:"open"`
}

type latencyJSON struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

type errorJSON struct {
	What  string    `json:"what"`
	Text  string    `json:"text"`
	Count int       `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

type rowsSummary struct {
	Found          int `json:"found"`
	Lost           int `json:"lost"`
	Extra          int `json:"extra"`
	OutOfOrder     int `json:"outOfOrder"`
	UnknownPresent int `json:"unknownPresent"`
	UnknownAbsent  int `json:"unknownAbsent"`
}

func (r result) summary() summary {
	s := r.Report
	out := summary{
		Run: s.Run, Started: s.Started, Stopped: s.At, Acknowledged: s.Acknowledged,
		Unknown: s.Unknown, Refused: s.Refused,
		Unconnected: s.Unconnected, Verified: r.Verification != nil, VerifyError: r.VerifyError, Errors: []errorJSON{},
		LongestGap: gapJSON{inMs(s.LongestGap.Duration()), s.LongestGap.Start, s.LongestGap.End, s.LongestGap.Open},
		Latency:    latencyJSON{inMs(s.Latency.P50), inMs(s.Latency.P99), inMs(s.Latency.Max)},
	}
	for _, e := range s.Errors {
		out.Errors = append(out.Errors, errorJSON(e))
	}
	out.Rows = rowsOf(r.Verification)
	return out
}

func rowsOf(v *writer.Verification) *rowsSummary {
	if v == nil {
		return nil
	}
	return &rowsSummary{v.Rows, len(v.Missing), len(v.Extra), len(v.OutOfOrder), v.UnknownPresent, v.UnknownAbsent}
}

func inMs(d time.Duration) float64 { return d.Seconds() * 1000 }

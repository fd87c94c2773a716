package binlog

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
)

// TestStatementsOfALogOfAServer reads a log that a real server wrote, whole and cut off.
func TestStatementsOfALogOfAServer(t *testing.T) {
	log := fileOf(t, "writes.bin")
	for name, content := range map[string][]byte{"whole": log, "while it is written": log[:len(log)-10]} {
		var got []string
		err := Statements(context.Background(), bytes.NewReader(content), func(s Statement) error {
			if s.Committed.Year() < 2026 {
				t.Errorf("%s was committed in %s", s.Text, s.Committed)
			}
			got = append(got, fmt.Sprintf("%s [%s] %s", s.ID, s.Schema, s.Text))
			return nil
		})
		if err != nil || !slices.Contains(got, real+":1 [d] create database d") {
			t.Errorf("%s: %v\n%q", name, err, got)
		}
	}
}

func TestStatementsOfATransactionWithoutAKnownGTIDAreNotOfTheOneBefore(t *testing.T) {
	var r StatementReader
	s := &Stream{}
	r.of = Statement{Schema: "before"}
	tagged := Event{Header: make([]byte, headerSize)}
	tagged.Header[offsetType] = typeGTIDTagged
	if _, is := r.Read(s, tagged); is {
		t.Error("what begins a transaction is a statement")
	}
	if st, is := r.Read(s, queryOf("DROP TABLE t", 0)); !is || !st.ID.IsEmpty() || st.Text != "DROP TABLE t" {
		t.Errorf("read %+v, %t", st, is)
	}
}

func FuzzStatement(f *testing.F) {
	f.Add(query("DROP TABLE t", 0))
	f.Fuzz(func(_ *testing.T, body []byte) {
		header := make([]byte, headerSize)
		header[offsetType] = typeQuery
		(&StatementReader{}).Read(&Stream{}, Event{Header: header, Body: body})
	})
}

package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"cnmsql.co/internal/printable"
)

// What an instance may say in one message. It is believed about its own cluster, and
// never with the memory of whoever listens to all clusters.
const (
	// maxMessage leaves room for positions of some hundred thousand intervals.
	maxMessage = 4 << 20
	// maxNodes bounds the lists and objects in a message: short ones take far more
	// memory read than written.
	maxNodes = 4096
	// maxText bounds each text, which may become part of a Cluster's status.
	maxText = 4 << 10
)

var errTooLong = errors.New("a message of an instance is longer than 4 MiB")

// messages reads one snapshot after the other.
type messages struct {
	from io.Reader
	left int64
	dec  *json.Decoder
	// text is what becomes of each text.
	text func(string) string
}

func newMessages(from io.Reader) *messages {
	m := &messages{from: from, text: shown}
	m.dec = json.NewDecoder(m)
	return m
}

// Read gives the decoder no more than one message may need.
func (m *messages) Read(p []byte) (int, error) {
	if m.left <= 0 {
		return 0, errTooLong
	}
	n, err := m.from.Read(p[:min(int64(len(p)), m.left)])
	m.left -= int64(n)
	return n, err
}

// ReadSnapshot reads a snapshot that an instance has written, within the bounds of all that instances say.
func ReadSnapshot(from io.Reader) (Snapshot, error) { return newMessages(from).next() }

// next is the next snapshot.
func (m *messages) next() (s Snapshot, err error) {
	err = m.read(&s)
	return s, err
}

// read reads the next message.
func (m *messages) read(into any) error {
	var raw json.RawMessage
	m.left = maxMessage
	if err := m.dec.Decode(&raw); err != nil {
		return err
	}
	if n := bytes.Count(raw, []byte{'{'}) + bytes.Count(raw, []byte{'['}); n > maxNodes {
		return fmt.Errorf("a message of an instance holds %d lists and objects; %d at most are read", n, maxNodes)
	}
	return m.understand(raw, into)
}

// understand reads what is in a message, or in a part of it that was read.
func (m *messages) understand(raw json.RawMessage, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return err
	}
	eachText(reflect.ValueOf(into), m.text)
	return nil
}

// shown makes a text fit to become part of a Cluster's status, and to be shown on a terminal.
func shown(text string) string { return printable.Text(clip(text, maxText)) }

// clip shortens a text that is longer than this many bytes.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return string(bytes.ToValidUTF8([]byte(text[:limit]), nil)) + "…"
}

// eachText changes every text that is reached from v.
func eachText(v reflect.Value, change func(string) string) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString(change(v.String()))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			eachText(v.Elem(), change)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			eachText(v.Field(i), change)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return // what has not been understood yet
		}
		for i := range v.Len() {
			eachText(v.Index(i), change)
		}
	}
}

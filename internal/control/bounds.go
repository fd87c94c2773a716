package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
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
}

func newMessages(from io.Reader) *messages {
	m := &messages{from: from}
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
	clip(reflect.ValueOf(into), maxText)
	return nil
}

// clip shortens every text that is longer than this many bytes.
func clip(v reflect.Value, limit int) {
	switch v.Kind() {
	case reflect.String:
		if text := v.String(); len(text) > limit && v.CanSet() {
			v.SetString(string(bytes.ToValidUTF8([]byte(text[:limit]), nil)) + "…")
		}
	case reflect.Pointer:
		if !v.IsNil() {
			clip(v.Elem(), limit)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			clip(v.Field(i), limit)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return // what has not been understood yet
		}
		for i := range v.Len() {
			clip(v.Index(i), limit)
		}
	}
}

// Package benchfile keeps docs/benchmarks.json, of which each benchmark owns some parts, and
// the made parts of docs/benchmarks.md. It must not know what is in them.
package benchfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// Part is what one name of the file's object stands for.
type Part struct {
	Name  string
	Value any
}

// Load reads the parts that have a field in a struct. Without a file there are none.
func Load(file string, into any) error {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	return nil
}

// Save puts parts in the place of those that the file has, and new ones at its end. What is
// nil is taken out of it. Everything else stays as it is.
func Save(file string, parts ...Part) error {
	all, err := read(file)
	if err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	for _, p := range parts {
		text, err := json.Marshal(p.Value)
		if err != nil {
			return fmt.Errorf("writing %s of %s: %w", p.Name, file, err)
		}
		at := slices.IndexFunc(all, func(m member) bool { return m.name == p.Name })
		switch gone := string(text) == "null"; {
		case at < 0 && !gone:
			all = append(all, member{p.Name, text})
		case at >= 0 && gone:
			all = slices.Delete(all, at, at+1)
		case at >= 0:
			all[at].text = text
		}
	}
	text, err := format(all)
	if err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	return os.WriteFile(file, text, 0o644)
}

// member of the file's object.
type member struct {
	name string
	text json.RawMessage
}

// read reads all parts, in their order.
func read(file string) (all []member, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && !json.Valid(text) {
		err = errors.New("it is no JSON; it is left as it is")
	}
	if err != nil {
		return nil, err
	}
	in := json.NewDecoder(bytes.NewReader(text))
	if t, err := in.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.Join(errors.New("it is no JSON object; it is left as it is"), err)
	}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return nil, err
		}
		m := member{name: fmt.Sprint(name)}
		if err := in.Decode(&m.text); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

func format(all []member) ([]byte, error) {
	var plain, out bytes.Buffer
	for i, m := range all {
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			plain.WriteByte(',')
		}
		plain.Write(name)
		plain.WriteByte(':')
		plain.Write(m.text)
	}
	if err := json.Indent(&out, slices.Concat([]byte("{"), plain.Bytes(), []byte("}")), "", " "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// Place is where a page has what is made: between two lines.
type Place struct{ Begins, Ends string }

// Write replaces what is made.
func (p Place) Write(page, made string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	head, rest, found := strings.Cut(string(text), p.Begins+"\n")
	_, tail, closed := strings.Cut(rest, p.Ends)
	if !found || !closed {
		return fmt.Errorf("%s has no place for what is made: give it the lines %q and %q", page, p.Begins, p.Ends)
	}
	return os.WriteFile(page, []byte(head+p.Begins+"\n"+made+p.Ends+tail), 0o644)
}

package observed

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// Read makes the observation that Write has told, as if it had been made at now. An error names
// the line that cannot be read.
func Read(text string, now time.Time) (core.Observation, error) {
	r := &reader{o: core.Observation{Now: now}}
	for n, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if err := r.line(line); err != nil {
			return r.o, fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	return r.o, nil
}

type reader struct {
	o core.Observation
}

var words = regexp.MustCompile(`(?:[^\s"]|"(?:[^"\\]|\\.)*")+`)

func (r *reader) line(line string) error {
	parts := words.FindAllString(line, -1)
	if len(parts) == 0 {
		return nil
	}
	word, parts := parts[0], parts[1:]
	c := &r.o.Cluster
	switch word {
	case "cluster":
		return r.set(c, parts)
	case "status":
		return r.set(&c.Status, parts)
	case "aside":
		c.Asides = append(c.Asides, core.Problem{})
		return r.set(&c.Asides[len(c.Asides)-1], parts)
	case "service":
		c.Services = append(c.Services, core.Service{})
		return r.set(&c.Services[len(c.Services)-1], parts)
	case "reinit":
		c.Reinit = append(c.Reinit, core.ReinitRequest{})
		return r.set(&c.Reinit[len(c.Reinit)-1], parts)
	case "blocked":
		c.Status.Blocked = &core.Notice{}
		return r.set(c.Status.Blocked, parts)
	case "notice":
		c.Status.Notices = append(c.Status.Notices, core.Notice{})
		return r.set(&c.Status.Notices[len(c.Status.Notices)-1], parts)
	case "past":
		c.Status.Past = append(c.Status.Past, core.PastOperation{})
		return r.set(&c.Status.Past[len(c.Status.Past)-1], parts)
	case "promotion":
		c.Status.Promotion = &core.Promotion{}
		return r.set(c.Status.Promotion, parts)
	case "operation":
		c.Status.Operation = &core.Operation{}
		return r.set(c.Status.Operation, parts)
	case "carried":
		return r.set(&r.o.Carried, parts)
	case "lease":
		return read(r, &c.Lease, parts)
	case "routed":
		var v struct{ Name string }
		return readAs(r, &c.Routed, parts, &v, func() string { return v.Name })
	case "instance":
		if len(parts) == 0 {
			return fmt.Errorf("an instance without a name")
		}
		r.o.Instances = append(r.o.Instances, core.Instance{Name: parts[0]})
		return r.set(&r.o.Instances[len(r.o.Instances)-1], parts[1:])
	}
	if len(r.o.Instances) == 0 {
		return fmt.Errorf("%s of no instance", word)
	}
	return r.fact(&r.o.Instances[len(r.o.Instances)-1], word, parts)
}

func (r *reader) fact(in *core.Instance, word string, parts []string) error {
	switch word {
	case "pod":
		return read(r, &in.Pod, parts)
	case "volume":
		return read(r, &in.Volume, parts)
	case "node":
		return read(r, &in.Node, parts)
	case "report":
		return read(r, &in.Report, parts)
	case "earlier":
		in.Earlier = append(in.Earlier, core.Fact[core.Report]{})
		return read(r, &in.Earlier[len(in.Earlier)-1], parts)
	case "last":
		return read(r, &in.Latest, parts)
	case "executed":
		var v struct{ Set gtid.Set }
		return readAs(r, &in.LastExecuted, parts, &v, func() gtid.Set { return v.Set })
	}
	return fmt.Errorf("nobody knows the word %q", word)
}

// read makes a fact of its fields and its time, which comes last.
func read[T any](r *reader, into *core.Fact[T], parts []string) error {
	var v T
	return readAs(r, into, parts, &v, func() T { return v })
}

func readAs[T any](r *reader, into *core.Fact[T], parts []string, v any, get func() T) error {
	if len(parts) == 0 || !strings.HasPrefix(parts[len(parts)-1], "@") {
		return fmt.Errorf("a fact needs its time, as @-1s")
	}
	earliest, latest, differ := strings.Cut(parts[len(parts)-1][1:], "..")
	if !differ {
		latest = earliest
	}
	notBefore, err := r.moment(earliest)
	if err != nil {
		return err
	}
	received, err := r.moment(latest)
	if err != nil {
		return err
	}
	if err := r.set(v, parts[:len(parts)-1]); err != nil {
		return err
	}
	*into = core.Known(get(), notBefore, received)
	return nil
}

func (r *reader) moment(text string) (time.Time, error) {
	d, err := time.ParseDuration(text)
	return r.o.Now.Add(d), err
}

// set sets fields by their names.
func (r *reader) set(into any, parts []string) error {
	for _, part := range parts {
		name, value, _ := strings.Cut(part, "=")
		if err := r.assign(reflect.ValueOf(into).Elem(), strings.Split(name, "."), value); err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
	}
	return nil
}

func (r *reader) assign(v reflect.Value, path []string, value string) error {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	if len(path) == 0 {
		return r.parse(v, value)
	}
	for i := range v.NumField() {
		if name := lower(v.Type().Field(i).Name); name == path[0] {
			if strings.HasSuffix(strings.ToLower(name), "uuid") {
				value = spellUUID(value)
			}
			return r.assign(v.Field(i), path[1:], value)
		}
	}
	return fmt.Errorf("there is no such field")
}

func (r *reader) parse(v reflect.Value, text string) (err error) {
	switch into := v.Addr().Interface().(type) {
	case *time.Time:
		*into, err = r.moment(text)
		return err
	case *time.Duration:
		*into, err = time.ParseDuration(text)
		return err
	case *gtid.Set:
		*into, err = gtid.Parse(spell(text))
		return err
	case *[]string:
		*into = strings.Split(text, ",")
		return nil
	}
	switch v.Kind() {
	case reflect.Struct:
		return nil // {}: there is one
	case reflect.String:
		if strings.HasPrefix(text, `"`) {
			text, err = strconv.Unquote(text)
		}
		v.SetString(spell(text))
	case reflect.Bool:
		v.SetBool(text == "true")
	case reflect.Float64:
		var f float64
		f, err = strconv.ParseFloat(text, 64)
		v.SetFloat(f)
	case reflect.Uint64:
		var n uint64
		n, err = strconv.ParseUint(text, 10, 64)
		v.SetUint(n)
	default:
		var n int64
		n, err = strconv.ParseInt(text, 10, 64)
		v.SetInt(n)
	}
	return err
}

var short = regexp.MustCompile(`\b([` + letters + `]):\d`)

// spell puts UUIDs for letters in a set, or in a sentence about one.
func spell(text string) string {
	return short.ReplaceAllStringFunc(text, func(m string) string { return spellUUID(m[:1]) + m[1:] })
}

func spellUUID(text string) string {
	if len(text) != 1 || !strings.Contains(letters, text) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if r == 'x' {
			return rune(text[0])
		}
		return r
	}, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")
}

package observed

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// Write tells an observation, line by line, for Read.
func Write(o *core.Observation) string {
	w := &writer{now: o.Now}
	c := o.Cluster
	w.line("cluster", &c)
	fact(w, "routed", c.Routed, func(p *string) string { return "name=" + *p })
	told(w, "lease", c.Lease)
	w.line("status", &c.Status)
	if c.Status.Blocked != nil {
		w.line("blocked", c.Status.Blocked)
	}
	for i := range c.Reinit {
		w.line("reinit", &c.Reinit[i])
	}
	for i := range c.Services {
		w.line("service", &c.Services[i])
	}
	for i := range c.Asides {
		w.line("aside", &c.Asides[i])
	}
	for i := range c.Status.Past {
		w.line("past", &c.Status.Past[i])
	}
	for i := range c.Status.Notices {
		w.line("notice", &c.Status.Notices[i])
	}
	if c.Status.Promotion != nil {
		w.line("promotion", c.Status.Promotion)
	}
	if c.Status.Operation != nil {
		w.line("operation", c.Status.Operation)
	}
	if !reflect.ValueOf(o.Carried).IsZero() {
		w.line("carried", &o.Carried)
	}
	for i := range o.Instances {
		w.instance(&o.Instances[i])
	}
	return letter(w.text.String())
}

type writer struct {
	now  time.Time
	text strings.Builder
}

func (w *writer) instance(in *core.Instance) {
	w.line("instance "+in.Name, in)
	told(w, "pod", in.Pod)
	told(w, "volume", in.Volume)
	told(w, "node", in.Node)
	told(w, "report", in.Report)
	for _, f := range in.Earlier {
		told(w, "earlier", f)
	}
	told(w, "last", in.Latest)
	fact(w, "executed", in.LastExecuted, func(s *gtid.Set) string { return "set=" + oneLine(*s) })
}

func (w *writer) line(word string, value any) {
	parts := append([]string{word}, w.fields(reflect.ValueOf(value).Elem(), "")...)
	w.text.WriteString(strings.Join(parts, " ") + "\n")
}

func told[T any](w *writer, word string, f core.Fact[T]) {
	fact(w, word, f, func(v *T) string { return strings.Join(w.fields(reflect.ValueOf(v).Elem(), ""), " ") })
}

// fact tells a fact that is known, and when it was true.
func fact[T any](w *writer, word string, f core.Fact[T], text func(*T) string) {
	v, known := f.Get()
	if !known {
		return
	}
	at := "@" + w.ago(f.NotBefore())
	if !f.Received().Equal(f.NotBefore()) {
		at += ".." + w.ago(f.Received())
	}
	w.text.WriteString(strings.Join(strings.Fields(word+" "+text(&v)+" "+at), " ") + "\n")
}

func (w *writer) ago(t time.Time) string { return t.Sub(w.now).String() }

// fields names every field that is not zero; a structure in it is told with it, but
// for those that have lines of their own.
func (w *writer) fields(v reflect.Value, prefix string) []string {
	var out []string
	for i := range v.NumField() {
		f, name := v.Field(i), prefix+lower(v.Type().Field(i).Name)
		if f.IsZero() || prefix == "" && hasLine(f.Type()) ||
			name == "name" && v.Type() == reflect.TypeFor[core.Instance]() {
			continue
		}
		out = append(out, w.field(f, name)...)
	}
	return out
}

func (w *writer) field(f reflect.Value, name string) []string {
	switch v := f.Interface().(type) {
	case time.Time:
		return []string{name + "=" + w.ago(v)}
	case time.Duration:
		return []string{name + "=" + v.String()}
	case gtid.Set:
		return []string{name + "=" + oneLine(v)}
	case []string:
		if len(v) == 0 {
			return nil
		}
		return []string{name + "=" + strings.Join(v, ",")}
	}
	switch f.Kind() {
	case reflect.Pointer:
		if f.Elem().Kind() != reflect.Struct {
			return w.field(f.Elem(), name)
		}
		return append([]string{name + "={}"}, w.fields(f.Elem(), name+".")...)
	case reflect.Struct:
		return w.fields(f, name+".")
	case reflect.String:
		return []string{name + "=" + quote(f.String())}
	default:
		return []string{fmt.Sprintf("%s=%v", name, f.Interface())}
	}
}

// hasLine reports whether values of the type are told in lines of their own.
func hasLine(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[core.Status](), reflect.TypeFor[*core.Promotion](), reflect.TypeFor[*core.Operation](),
		reflect.TypeFor[*core.Notice](), reflect.TypeFor[[]core.Notice](),
		reflect.TypeFor[[]core.PastOperation](), reflect.TypeFor[[]core.Problem](),
		reflect.TypeFor[[]core.ReinitRequest](), reflect.TypeFor[[]core.Service](),
		reflect.TypeFor[[]core.Fact[core.Report]]():
		return true
	}
	return strings.HasPrefix(t.Name(), "Fact[")
}

func quote(s string) string {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || r == '"' || r == '@' || r > unicode.MaxASCII
	}) {
		return strconv.Quote(s)
	}
	return s
}

func oneLine(s gtid.Set) string { return strings.ReplaceAll(s.String(), "\n", "") }

func lower(name string) string {
	if strings.ToUpper(name) == name { // UID, UUID
		return strings.ToLower(name)
	}
	return strings.ToLower(name[:1]) + name[1:]
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// letter puts a, b, … for UUIDs, in their order; where there are more than letters,
// for the last of them, so that the order of all stays what it was.
func letter(text string) string {
	found := uuids.FindAllString(text, -1)
	slices.Sort(found)
	found = slices.Compact(found)
	found = found[max(0, len(found)-len(letters)):]
	return uuids.ReplaceAllStringFunc(text, func(u string) string {
		if i, ok := slices.BinarySearch(found, u); ok {
			return letters[i : i+1]
		}
		return u
	})
}

const letters = "abcdef"

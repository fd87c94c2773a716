package v1alpha1

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// The API server takes some values which Go's types do not read: a time without microseconds, a
// quantity of two exponents. An object that has one would end each list of which it is part, and
// with it the watch of all others. It is read without spec and status instead, and says so.

// UnmarshalJSON reads a Cluster; one that is unreadable as far as its metadata.
func (c *Cluster) UnmarshalJSON(data []byte) error {
	type plain Cluster
	h, why, err := read(data, func(text []byte) error { return unmarshal(text, (*plain)(c)) })
	if h != nil {
		*c = Cluster{TypeMeta: h.TypeMeta, ObjectMeta: h.ObjectMeta}
	}
	c.UnreadWhy = why
	return err
}

// Unread tells what of it could not be read; nil if all was. Nobody may decide by the rest.
func (c *Cluster) Unread() error { return unreadError("Cluster", c.ObjectMeta, c.UnreadWhy) }

// UnmarshalJSON reads a Backup; one that is unreadable as far as its metadata.
func (b *Backup) UnmarshalJSON(data []byte) error {
	type plain Backup
	h, why, err := read(data, func(text []byte) error { return unmarshal(text, (*plain)(b)) })
	if h != nil {
		*b = Backup{TypeMeta: h.TypeMeta, ObjectMeta: h.ObjectMeta}
	}
	b.UnreadWhy = why
	return err
}

// Unread tells what of it could not be read; nil if all was. Nobody may decide by the rest.
func (b *Backup) Unread() error { return unreadError("Backup", b.ObjectMeta, b.UnreadWhy) }

// UnmarshalJSON reads a ScheduledBackup; one that is unreadable as far as its metadata.
func (s *ScheduledBackup) UnmarshalJSON(data []byte) error {
	type plain ScheduledBackup
	h, why, err := read(data, func(text []byte) error { return unmarshal(text, (*plain)(s)) })
	if h != nil {
		*s = ScheduledBackup{TypeMeta: h.TypeMeta, ObjectMeta: h.ObjectMeta}
	}
	s.UnreadWhy = why
	return err
}

// Unread tells what of it could not be read; nil if all was. Nobody may decide by the rest.
func (s *ScheduledBackup) Unread() error {
	return unreadError("ScheduledBackup", s.ObjectMeta, s.UnreadWhy)
}

func unreadError(kind string, of metav1.ObjectMeta, why string) error {
	if why == "" {
		return nil
	}
	return fmt.Errorf("%s %s of namespace %s cannot be read: %s; correct it with kubectl edit (--subresource=status "+
		"where it is in the status)", kind, of.Name, of.Namespace, why)
}

func unmarshal(text []byte, into any) error {
	return kjson.UnmarshalCaseSensitivePreserveInts(text, into)
}

// read reads an object by whole; where that fails it returns its metadata, and why. An error is
// that not even these can be read.
func read(data []byte, whole func([]byte) error) (*metav1.PartialObjectMetadata, string, error) {
	err := whole(data)
	if err == nil {
		return nil, "", nil
	}
	var h metav1.PartialObjectMetadata
	if unmarshal(data, &h) != nil {
		return nil, "", err
	}
	return &h, cmp.Or(culprit(data, whole), err.Error()), nil
}

// culprit names the fields of spec and status that cannot be read by themselves, and why.
func culprit(data []byte, whole func([]byte) error) string {
	var parts struct{ Spec, Status map[string]json.RawMessage }
	if json.Unmarshal(data, &parts) != nil {
		return ""
	}
	var all []string
	for part, fields := range map[string]map[string]json.RawMessage{"spec": parts.Spec, "status": parts.Status} {
		for name, value := range fields {
			alone, err := json.Marshal(map[string]map[string]json.RawMessage{part: {name: value}})
			if err != nil {
				continue
			}
			if err := whole(alone); err != nil {
				all = append(all, fmt.Sprintf("%s.%s: %v", part, name, err))
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

package store

import (
	"strings"
	"unicode/utf8"
)

// Bounds of a key and of its elements, in bytes: S3 takes 1024 with the path that stands
// before, a file's name may have 255.
const (
	maxKey     = 900
	maxElement = 255
	maxPath    = 1024 - maxKey - 1
)

// reserved begins names that stores use themselves, and that no key may have.
const reserved = ".cnmsql-store-"

// CheckKey tells whether a store takes a key: a relative path of plain names that are
// parted by single slashes. An error is BadKey.
func CheckKey(key string) error {
	if why := wrongKey(key); why != "" {
		return refuse(BadKey, "key %q %s", key, why)
	}
	return nil
}

func wrongKey(key string) string {
	if len(key) > maxKey {
		return "is too long"
	}
	if !utf8.ValidString(key) || strings.ContainsFunc(key, func(r rune) bool {
		return r < ' ' || r == 0x7f || r == '\\'
	}) {
		return "has a character that is not allowed"
	}
	for element := range strings.SplitSeq(key, "/") {
		switch {
		case element == "", element == ".", element == "..":
			return "has an element that is empty, . or .."
		case len(element) > maxElement:
			return "has an element that is too long"
		case strings.HasPrefix(element, reserved):
			return "has an element that stores use themselves"
		}
	}
	return ""
}

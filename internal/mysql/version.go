package mysql

import (
	"fmt"
	"regexp"
	"strconv"
)

// Version of a server, as its own binary says; never taken from an image's tag.
type Version struct {
	Major, Minor, Patch int
	// Text is what mysqld calls itself, for example "9.7.4-2".
	Text string
}

// Oldest is the first version that can be run.
var Oldest = Version{Major: 8, Minor: 0, Patch: 22, Text: "8.0.22"}

var versionText = regexp.MustCompile(`Ver (\d+\.\d+\.\d+\S*)`)

// ParseVersion reads what `mysqld --version` prints.
func ParseVersion(banner string) (Version, error) {
	m := versionText.FindStringSubmatch(banner)
	if m == nil {
		return Version{}, fmt.Errorf("reading the version of mysqld: %q holds no version", banner)
	}
	v, err := parseNumbers(m[1])
	if err != nil {
		return Version{}, fmt.Errorf("reading the version of mysqld: %w", err)
	}
	if !v.AtLeast(Oldest) {
		return v, fmt.Errorf("mysqld %s is too old: use an image with MySQL or Percona Server %s or later", v.Text,
			Oldest.Text)
	}
	return v, nil
}

var versionNumbers = regexp.MustCompile(`^(\d+)\.(\d+)\.(\d+)`)

// parseNumbers reads a version without its banner.
func parseNumbers(text string) (Version, error) {
	m := versionNumbers.FindStringSubmatch(text)
	if m == nil {
		return Version{}, fmt.Errorf("%q is no version", text)
	}
	v := Version{Text: text}
	for i, part := range []*int{&v.Major, &v.Minor, &v.Patch} {
		n, err := strconv.Atoi(m[i+1])
		if err != nil {
			return Version{}, fmt.Errorf("%q: %w", text, err)
		}
		*part = n
	}
	return v, nil
}

// numbers is the version without what the server adds to it.
func (v Version) numbers() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// AtLeast reports whether v is old or newer.
func (v Version) AtLeast(old Version) bool {
	if v.Major != old.Major {
		return v.Major > old.Major
	}
	if v.Minor != old.Minor {
		return v.Minor > old.Minor
	}
	return v.Patch >= old.Patch
}

// String is the server's own text.
func (v Version) String() string { return v.Text }

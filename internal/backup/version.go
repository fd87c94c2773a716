package backup

import (
	"regexp"
	"strconv"
)

var versionNumbers = regexp.MustCompile(`^(\d{1,3})\.(\d{1,3})\.(\d{1,3})(\D|$)`)

// Fits refuses a server that cannot run on the backup's data: one of another series
// (SeriesDiffers), or older than the donor (ServerOlder). Its version is x.y.z, and what
// may follow.
func (m *Manifest) Fits(server string) error { return Fits("backup "+m.ID, m.Server, server) }

// Fits is Manifest.Fits for data that what names, of a donor of this version.
func Fits(what, donor, server string) error {
	has, err := parseVersion(server)
	if err != nil {
		return err
	}
	is, err := parseVersion(donor)
	if err != nil {
		return err
	}
	if has[0] != is[0] || has[1] != is[1] {
		return refuse(SeriesDiffers, "%s is of MySQL %s, and the server is %s", what, donor, server)
	}
	if has[2] < is[2] {
		return refuse(ServerOlder, "%s is of MySQL %s, and the server is %s", what, donor, server)
	}
	return nil
}

func parseVersion(text string) (v [3]int, err error) {
	found := versionNumbers.FindStringSubmatch(text)
	if found == nil {
		return v, refuse(VersionUnknown, "version %q", text)
	}
	for i := range v {
		if v[i], err = strconv.Atoi(found[i+1]); err != nil {
			return v, err
		}
	}
	return v, nil
}

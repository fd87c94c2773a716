package backup

import (
	"regexp"
	"strconv"
)

var versionNumbers = regexp.MustCompile(`^(\d{1,3})\.(\d{1,3})\.(\d{1,3})(\D|$)`)

// Fits refuses a server that cannot run on the backup's data: one of another series
// (SeriesDiffers), or older than the donor (ServerOlder). Its version is x.y.z, and what
// may follow.
func (m *Manifest) Fits(server string) error {
	has, err := parseVersion(server)
	if err != nil {
		return err
	}
	donor, err := parseVersion(m.Server)
	if err != nil {
		return err
	}
	if has[0] != donor[0] || has[1] != donor[1] {
		return refuse(SeriesDiffers, "backup %s is of MySQL %s, and the server is %s", m.ID, m.Server, server)
	}
	if has[2] < donor[2] {
		return refuse(ServerOlder, "backup %s is of MySQL %s, and the server is %s", m.ID, m.Server, server)
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

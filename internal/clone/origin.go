package clone

import (
	"fmt"
	"regexp"
	"strconv"
)

// The versions of the protocol that are known; the donor takes the lower of ours and its
// own.
const (
	protocolFirst = 0x0100
	protocolLast  = 0x0103
)

// pageSize is the innodb_page_size that was verified.
const pageSize = 16384

// Origin is what a donor tells about itself. Who restores must have the same, and the
// snapshot does not hold it.
type Origin struct {
	Protocol   uint32            `json:"protocol"`
	Plugins    []Plugin          `json:"plugins"`
	Collations []string          `json:"collations"`
	Config     map[string]string `json:"config"`
}

// Plugin of a donor; Library is "" for those that are built in.
type Plugin struct {
	Name    string `json:"name"`
	Library string `json:"library,omitempty"`
}

// Version is the donor's, for example "9.7.4".
func (o Origin) Version() string { return o.Config["version"] }

var versionNumbers = regexp.MustCompile(`^(\d{1,2})\.(\d{1,2})\.(\d{1,2})(\D|$)`)

// verified are the series whose clones were tried, and since when redo files lie where
// this package writes them.
var verified = map[uint32]uint32{800: 80030, 907: 90700}

// serverNumber is the version as InnoDB writes it into tablespaces: 90704 for 9.7.4.
func (o Origin) serverNumber() (uint32, error) {
	m := versionNumbers.FindStringSubmatch(o.Version())
	if m == nil {
		return 0, refuse(UnknownVersion, "the donor's version %q", o.Version())
	}
	var number uint32
	for _, part := range m[1:4] {
		n, err := strconv.ParseUint(part, 10, 8)
		if err != nil {
			return 0, fmt.Errorf("the donor's version %q: %w", o.Version(), err)
		}
		number = number*100 + uint32(n)
	}
	if first := verified[number/100]; first == 0 || number < first {
		return 0, refuse(UnknownVersion, "the donor has version %s", o.Version())
	}
	return number, nil
}

// check refuses donors that were not verified, before any data flow.
func (o Origin) check() error {
	if o.Protocol < protocolFirst || o.Protocol > protocolLast {
		return refuse(UnknownVersion, "the donor speaks version %#x of the clone protocol", o.Protocol)
	}
	if size := o.Config["innodb_page_size"]; size != strconv.Itoa(pageSize) {
		return refuse(PageSize, "the donor has innodb_page_size=%s", size)
	}
	_, err := o.serverNumber()
	return err
}

package mysql

import (
	"fmt"
	"regexp"

	"cnmsql.co/internal/gtid"
)

var (
	// sourceOfGTID is the UUID that begins a source's transactions in gtid_owned.
	sourceOfGTID = regexp.MustCompile(`(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	// ownerOfGTID is the thread that gtid_owned names behind each transaction.
	ownerOfGTID = regexp.MustCompile(`#[0-9]+`)
)

// parseOwned reads gtid_owned, which is no GTID set: each transaction has its thread behind it,
// as in uuid:6#9:5#8, and nothing stands between one source, or tag, and the next. An UUID is
// found behind a thread's number because exactly eight digits stand before its first dash.
func parseOwned(text string) (gtid.Set, error) {
	set, err := gtid.Parse(ownerOfGTID.ReplaceAllString(sourceOfGTID.ReplaceAllString(text, ",$0"), ""))
	if err != nil {
		return gtid.Set{}, fmt.Errorf("reading gtid_owned %q: %w", text, err)
	}
	return set, nil
}

package instance

import (
	"strconv"
	"strings"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// awaitArchived waits until the newest transaction of the primary is archived.
func (w *world) awaitArchived(n *node) {
	w.t.Helper()
	uuid := w.answers(n).Server.UUID
	newest := lastNumber(w.executed(n).Of(uuid).String())
	w.await(n, "archived", func(r core.Report) bool {
		if r.Archive == nil || r.Archive.GTIDs == "" {
			return false
		}
		// A report has the last part, which may have been stored behind that of the newest.
		last := lastNumber(gtid.MustParse(r.Archive.GTIDs).Of(uuid).String())
		return last >= newest
	})
}

// lastNumber is that of the last transaction in a set of one server.
func lastNumber(set string) int {
	n, _ := strconv.Atoi(set[strings.LastIndexAny(set, ":-")+1:])
	return n
}

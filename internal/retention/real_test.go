package retention

import (
	"testing"
	"time"

	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

func everyStore() map[string]func(testing.TB) string {
	return map[string]func(testing.TB) string{"a directory": storetest.Dir, "S3": storetest.S3,
		"Azure": func(t testing.TB) string { return storetest.Azurite(t).ByKey(t) }}
}

// TestAStoreTellsItsTime: what the memory of the other tests tells, a directory, an S3
// server and one of Azure tell, too. With no window at all, the newest backup is enough.
func TestAStoreTellsItsTime(t *testing.T) {
	for name, dir := range everyStore() {
		t.Run(name, func(t *testing.T) {
			s, err := store.Open(dir(t))
			must(t, err)
			m := tenDays(t)
			const last = "db/base/day9/manifest.json"
			for key, body := range m.objects {
				if key != last {
					must(t, s.Put(t.Context(), key, body))
				}
			}
			must(t, s.Create(t.Context(), last, m.objects[last]))
			p := threeDays()
			p.Window, p.Now = 0, time.Now()
			r := Run(t.Context(), s, p)
			if r.Held != "" || len(r.Backups) != 9 || r.Parts != 9 || r.Unknown != 3 || !r.Since.Equal(day(9, 0)) {
				t.Errorf("%+v", r)
			}
			left := 0
			for _, err := range s.List(t.Context(), "") {
				must(t, err)
				left++
			}
			// The identity, the branch and a part, a backup of two objects, two that may be going
			// on, and four that nobody knows.
			if left != 11 {
				t.Errorf("%d objects are left", left)
			}
		})
	}
}

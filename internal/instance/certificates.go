package instance

import (
	"context"
	"log/slog"
	"time"

	"cnmsql.co/internal/mysql"
)

// certificates has mysqld read its certificates again when they were rotated.
type certificates struct {
	dirs Dirs
	log  *slog.Logger
	by   certified
	asks func() *mysql.Server
	// member compares the files with those that mysqld joined its group with.
	member func() *membership
}

// certified is what certificates asks of its manager.
type certified interface {
	// tookOver: the manager goes on where another was, in the same process.
	tookOver() bool
	// answeredWithin reports whether mysqld has answered lately.
	answeredWithin(d time.Duration) bool
}

func newCertificates(m *manager) *certificates {
	return &certificates{dirs: m.opt.Dirs, log: m.log, by: m, asks: func() *mysql.Server { return m.metrics },
		member: func() *membership { return m.membership }}
}

// keepCertificates looks at the files every ten seconds.
func (c *certificates) keepCertificates(ctx context.Context) {
	tick := newTicker(10 * time.Second)
	defer tick.Stop()
	d := c.dirs
	last := ""
	if !c.by.tookOver() { // else mysqld may have older ones
		last, _ = stampOf(d.ca(), d.cert(), d.key())
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			tick.again()
		}
		c.member().compareCertificates(time.Now())
		now, err := stampOf(d.ca(), d.cert(), d.key())
		if err != nil || now == last || !c.by.answeredWithin(2*time.Second) {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, 5*time.Second)
		err = c.asks().ReloadTLS(limited)
		cancel()
		if err != nil {
			c.log.Error("mysqld cannot reload its certificates; the manager tries again", "error", err)
			continue
		}
		c.log.Info("mysqld has reloaded its certificates")
		last = now
	}
}

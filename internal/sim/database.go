package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnmsql.co/internal/gtid"
)

// txn is one transaction, wherever it is. Two may have the same GTID, when one
// was cut off and its number was given to the other.
type txn struct {
	set    gtid.Set
	origin *database
	seq    int
	// acked: a client has read success. strict: and was promised, at that moment,
	// that it survives a minority. holders are who had it then.
	acked, strict bool
	// recovered: a start has committed it, of which nobody had read success.
	recovered bool
	// vouched is what another said to whoever recovered it, right before mysqld was started for that, and
	// recoveredAt when it was.
	vouched     word
	recoveredAt time.Duration
	holders     []*database
	members     int
	// after is what its server had in its binary log before it, where that is archived.
	after gtid.Set
}

// database is what lies in a data directory. It is also a server's identity: a
// copy has another UUID.
type database struct {
	w        *world
	instance string
	uuid     string
	machine  int // on which it was opened last
	// executed is committed in the engine; logged is that and what is only in
	// the binary log yet, in prepared.
	executed, purged, logged gtid.Set
	binlog                   []*txn // what is not purged, in order
	base                     int    // the position of binlog[0]
	lastFile                 int    // the position at which the last file begins
	prepared                 []*txn
	next                     int

	// source is the instance that the channel points at; "" without a channel.
	source     string
	sourceUUID string // of the server that it was connected to last
	retrieved  gtid.Set
	relay      []*txn // received and not applied
	cached     pageCache
	sqlError   string

	// destroyed by an accident or a human; removed by the operator.
	destroyed, removed bool
}

func newDatabase(w *world, instance string) *database {
	w.serial++
	return &database{w: w, instance: instance, uuid: fmt.Sprintf("%08x-0000-0000-0000-%012x", w.serial,
		ordinalOf(instance)), next: 1}
}

// copyOf is what a clone makes of a donor's.
func copyOf(donor *database, instance string) *database {
	d := newDatabase(donor.w, instance)
	d.executed, d.purged, d.logged = donor.executed, donor.executed, donor.executed
	return d
}

// append writes a transaction of its own to the binary log.
func (d *database) append() *txn {
	t := &txn{set: gtid.MustParse(fmt.Sprintf("%s:%d", d.uuid, d.next)), origin: d, seq: d.next}
	d.next++
	d.w.truth.born(t)
	d.log(t)
	d.prepared = append(d.prepared, t)
	return t
}

func (d *database) log(t *txn) {
	d.binlog = append(d.binlog, t)
	d.logged = d.logged.Union(t.set)
	d.w.archive.logged(d, t)
}

// commit makes the first prepared transaction one of the engine's.
func (d *database) commit(t *txn) {
	d.executed = d.executed.Union(t.set)
	if i := slices.Index(d.prepared, t); i >= 0 {
		d.prepared = slices.Delete(d.prepared, i, i+1)
	}
}

// recover is what a start does: what is in the binary log is committed, and returned; relay
// logs that are not durable are dropped. A new file is begun.
func (d *database) recover(durableRelay bool) (committed []*txn) {
	for len(d.prepared) > 0 {
		committed = append(committed, d.prepared[0])
		d.prepared[0].recovered = true
		d.commit(d.prepared[0])
	}
	d.lastFile = d.end()
	if !durableRelay {
		d.relay, d.retrieved = nil, gtid.Set{}
	}
	return committed
}

// cutTail takes what held lacks off the last file, if nothing behind it is held.
func (d *database) cutTail(held gtid.Set) {
	for i := max(d.lastFile-d.base, 0); i < len(d.binlog); i++ {
		if held.Contains(d.binlog[i].set) {
			continue
		}
		tail := d.binlog[i:]
		for _, t := range tail {
			if held.Contains(t.set) {
				return // interleaved: left to recovery
			}
		}
		d.truncate(i, tail)
		return
	}
}

func (d *database) truncate(from int, tail []*txn) {
	for _, t := range tail {
		if !d.executed.Contains(t.set) {
			d.logged = d.logged.Subtract(t.set)
			if t.origin == d {
				d.next = min(d.next, t.seq)
			}
		}
		if i := slices.Index(d.prepared, t); i >= 0 {
			d.prepared = slices.Delete(d.prepared, i, i+1)
		}
	}
	d.w.truth.cut(d, tail)
	d.binlog = d.binlog[:from:from]
	if !d.w.mut.NumbersAgain { // its numbers are not given again: it begins as another server
		d.uuid, d.next = newDatabase(d.w, d.instance).uuid, 1
	}
}

// turnBack takes the server's own last transactions away as if they had never been,
// and tells how many.
func (d *database) turnBack(most int) int {
	n := 0
	for n < min(most, len(d.binlog)/2) && d.binlog[len(d.binlog)-1-n].origin == d {
		n++
	}
	lost := d.binlog[len(d.binlog)-n:]
	d.binlog = d.binlog[: len(d.binlog)-n : len(d.binlog)-n]
	d.lastFile = min(d.lastFile, d.end())
	for _, t := range lost {
		d.logged, d.executed = d.logged.Subtract(t.set), d.executed.Subtract(t.set)
		if i := slices.Index(d.prepared, t); i >= 0 {
			d.prepared = slices.Delete(d.prepared, i, i+1)
		}
		d.next = min(d.next, t.seq)
	}
	return n
}

func (d *database) end() int { return d.base + len(d.binlog) }

// purge removes all of the binary log but the last keep transactions, and what is read
// at this moment, from that position on.
func (d *database) purge(keep, read int) {
	n := min(len(d.binlog)-keep-len(d.prepared), read-d.base)
	if n <= 0 {
		return
	}
	for _, t := range d.binlog[:n] {
		d.purged = d.purged.Union(t.set)
	}
	d.binlog, d.base = d.binlog[n:], d.base+n
}

// holds is everything that it has, executed or only received.
func (d *database) holds() gtid.Set {
	if d.source == "" {
		return d.logged
	}
	return d.logged.Union(d.retrieved)
}

// receive takes a transaction from the source into the relay log.
func (d *database) receive(t *txn) {
	if d.logged.Contains(t.set) || d.retrieved.Contains(t.set) {
		return
	}
	d.retrieved = d.retrieved.Union(t.set)
	d.relay = append(d.relay, t)
	d.cached.unflushed++
}

// apply executes the oldest transaction of the relay log.
func (d *database) apply() {
	t := d.relay[0]
	d.relay = d.relay[1:]
	if !d.executed.Contains(t.set) {
		d.log(t)
		d.executed = d.executed.Union(t.set)
	}
}

func ordinalOf(instance string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(instance, clusterName+"-"))
	return n
}

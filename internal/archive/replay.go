package archive

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
	ours "cnmsql.co/internal/mysql"
)

// Replay gives the archive to a running server, which replicates from nobody and takes no
// writes, as relay logs of a channel: the server's own applier, with as many workers as it
// is configured for, does the rest. What the server has executed already it skips.
//
// If it is broken off, the data is that of some moment before the target; to run it again
// with the same plan goes on from there.
type Replay struct {
	Place
	// DB is the server. The account needs REPLICATION_SLAVE_ADMIN, SYSTEM_VARIABLES_ADMIN
	// and SELECT on performance_schema and all tables, and the process the right to write where the server
	// keeps its relay logs, under the names that the server gives them.
	DB *sql.DB
	// BatchBytes of relay logs are applied at a time, while as many are prepared: about
	// twice that lies on the volume. A part is not divided. 0 is 256 MiB.
	BatchBytes int64
	// ServerID is the number that the server has meanwhile: it leaves out events of its own
	// number, and the archive may be full of those. 0 is the largest there is.
	ServerID uint32
	// Progress is told how far it is, several times a second; nil if nobody asks.
	Progress func(Progress)
	// Applied is called behind each batch that was applied; nil if nothing is to be done.
	Applied func(context.Context) error

	lacking lacking
}

// Progress of a Replay.
type Progress struct {
	// Transactions that were replayed, of how many.
	Transactions, Of int64
	// Bytes of the parts that were replayed as a whole, of how many.
	Bytes, OfBytes int64
	// Part is the last one that was replayed, and Reached the latest commit up to it; zero
	// before there is one.
	Part    facts.Key
	Reached time.Time
}

// Whole is how much a plan replays.
func Whole(plan facts.Plan) Progress {
	p := Progress{}
	for _, s := range plan.Steps {
		p.Of, p.OfBytes = p.Of+int64(s.Take.Count()), p.OfBytes+sizeOf(s)
	}
	return p
}

func sizeOf(s facts.Step) (bytes int64) {
	for _, piece := range s.Pieces {
		bytes += piece.Size
	}
	return bytes
}

// pass notes the steps that a server has executed, and returns those that it has not.
func (p *Progress) pass(steps []facts.Step, executed gtid.Set) []facts.Step {
	for len(steps) > 0 && executed.Contains(steps[0].Take) {
		last := steps[0].Pieces[len(steps[0].Pieces)-1]
		p.Part, p.Bytes = last.Key(), p.Bytes+sizeOf(steps[0])
		if last.Last.After(p.Reached) {
			p.Reached = last.Last
		}
		steps = steps[1:]
	}
	return steps
}

// Channel is the replication channel of which a replay's relay logs are.
const Channel = "archive"

const (
	defaultBatchBytes = 256 << 20
	topServerID       = 1<<32 - 1
	patience          = 200 * time.Millisecond
	ending            = 30 * time.Second

	errChannelUnknown = 3074
	readAll           = "has read all relay log"
)

// Run replays a plan, see Choose, and returns when the server has executed all of it.
func (r *Replay) Run(ctx context.Context, plan facts.Plan) (err error) {
	if r.BatchBytes <= 0 {
		r.BatchBytes = defaultBatchBytes
	}
	if r.ServerID == 0 {
		r.ServerID = topServerID
	}
	if err := r.lacking.begin(ctx, r.DB); err != nil || len(plan.Steps) == 0 {
		return err
	}
	logs, err := r.relayLogs(ctx)
	if err != nil {
		return err
	}
	if err := r.forget(ctx); err != nil {
		return err
	}
	if err := logs.clear("-staged.*"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, logs.clear("-staged.*")) }()
	back, err := r.number(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, back()) }()
	return r.batches(ctx, logs, plan)
}

// number gives the server another number, and returns what takes it back.
func (r *Replay) number(ctx context.Context) (back func() error, err error) {
	var own uint32
	if err := r.DB.QueryRowContext(ctx, "SELECT @@GLOBAL.server_id").Scan(&own); err != nil {
		return nil, fmt.Errorf("asking for the server's number: %w", err)
	}
	set := func(ctx context.Context, id uint32) error {
		if _, err := r.DB.ExecContext(ctx, "SET GLOBAL server_id = ?", id); err != nil {
			return fmt.Errorf("giving the server the number %d: %w", id, err)
		}
		return nil
	}
	return func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ending)
		defer cancel()
		return set(ctx, own)
	}, set(ctx, r.ServerID)
}

// batches applies a batch while the next one is prepared.
func (r *Replay) batches(ctx context.Context, logs relayLogs, plan facts.Plan) error {
	ctx, cancel := context.WithCancel(ctx)
	given, ended := make(chan batch), make(chan error, 1)
	go func() {
		ended <- r.prepare(ctx, logs, plan.Steps, given)
		close(given)
	}()
	p := Whole(plan)
	r.tell(p)
	var err error
	for b := range given {
		if err = r.apply(ctx, logs, b, p); err != nil {
			break
		}
		p.Transactions += b.transactions
		p.pass(b.steps, b.set)
		r.tell(p)
		if r.Applied != nil {
			if err = r.Applied(ctx); err != nil {
				break
			}
		}
	}
	cancel()
	if prepared := <-ended; err == nil {
		err = prepared
	}
	return err
}

func (r *Replay) tell(p Progress) {
	if r.Progress != nil {
		r.Progress(p)
	}
}

// apply lets the server apply a batch, and waits until it has.
func (r *Replay) apply(ctx context.Context, logs relayLogs, b batch, p Progress) (err error) {
	if err := logs.place(b.files); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.forget(context.WithoutCancel(ctx))) }()
	if _, err := r.DB.ExecContext(ctx, logs.take, filepath.Base(logs.file(1))); err != nil {
		return fmt.Errorf("giving the server the archive as relay logs: %w", err)
	}
	if err := r.start(ctx, gtid.Set{}); err != nil {
		return err
	}
	around := detour{r: r, statements: b.statements}
	before := p.Transactions
	for idle, steps := 0, b.steps; ; {
		done, has, err := r.wait(ctx, b.set)
		if err != nil || done {
			return err
		}
		left := int64(b.set.Subtract(has).Count())
		steps = p.pass(steps, has)
		p.Transactions = before + b.transactions - left
		r.tell(p)
		rests, err := r.rests(ctx)
		if errors.Is(err, ApplierFailed) {
			if err = around.take(ctx, err); err == nil {
				rests = false
			}
		}
		switch {
		case err != nil:
			return err
		case !rests:
			idle = 0
		default:
			idle++
		}
		if idle > 10 {
			return refuse(ReplayStuck, "%d transactions of %s", left, b.set.Abbreviate(4))
		}
	}
}

// wait a moment until a set is executed; has is what is.
func (r *Replay) wait(ctx context.Context, set gtid.Set) (done bool, has gtid.Set, err error) {
	var late int
	var executed string
	err = r.DB.QueryRowContext(ctx, "SELECT WAIT_FOR_EXECUTED_GTID_SET(?, ?), @@GLOBAL.gtid_executed", set.String(),
		patience.Seconds()).Scan(&late, &executed)
	if err != nil {
		return false, has, fmt.Errorf("waiting until the archive is applied: %w", err)
	}
	has, err = gtid.Parse(executed)
	return late == 0, has, err
}

// rests reports whether the applier has read all that it was given, and no worker has a
// transaction in hand, which may take as long as it likes; an error if it has failed or does not
// run.
func (r *Replay) rests(ctx context.Context) (is bool, err error) {
	var number int
	var message string
	err = r.DB.QueryRowContext(ctx, `SELECT LAST_ERROR_NUMBER, LAST_ERROR_MESSAGE FROM
		(SELECT CHANNEL_NAME, LAST_ERROR_NUMBER, LAST_ERROR_MESSAGE
			FROM performance_schema.replication_applier_status_by_worker
		UNION ALL SELECT CHANNEL_NAME, LAST_ERROR_NUMBER, LAST_ERROR_MESSAGE
			FROM performance_schema.replication_applier_status_by_coordinator) s
		WHERE CHANNEL_NAME = ? AND LAST_ERROR_NUMBER <> 0 LIMIT 1`, Channel).Scan(&number, &message)
	if err == nil {
		return false, refuse(ApplierFailed, "error %d: %s", number, message)
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return false, fmt.Errorf("asking for errors of the applier: %w", err)
	}
	var service, state string
	var busy int
	err = r.DB.QueryRowContext(ctx, `SELECT s.SERVICE_STATE, COALESCE(t.PROCESSLIST_STATE, ''),
		(SELECT COUNT(*) FROM performance_schema.replication_applier_status_by_worker w
			WHERE w.CHANNEL_NAME = s.CHANNEL_NAME AND w.APPLYING_TRANSACTION <> '')
		FROM performance_schema.replication_applier_status s
		LEFT JOIN performance_schema.replication_applier_status_by_coordinator c ON c.CHANNEL_NAME = s.CHANNEL_NAME
		LEFT JOIN performance_schema.threads t ON t.THREAD_ID = c.THREAD_ID
		WHERE s.CHANNEL_NAME = ?`, Channel).Scan(&service, &state, &busy)
	if err != nil {
		return false, fmt.Errorf("asking what the applier does: %w", err)
	}
	if service != "ON" {
		return false, refuse(ApplierFailed, "the applier has stopped")
	}
	return strings.Contains(state, readAll) && busy == 0, nil
}

// start the applier, perhaps until before the first of some transactions.
func (r *Replay) start(ctx context.Context, before gtid.Set) error {
	until := ""
	if !before.IsEmpty() {
		until = " UNTIL SQL_BEFORE_GTIDS = '" + before.String() + "'"
	}
	if _, err := r.DB.ExecContext(ctx, "START REPLICA SQL_THREAD"+until+" FOR CHANNEL '"+Channel+"'"); err != nil {
		return fmt.Errorf("starting to apply the archive: %w", err)
	}
	return nil
}

// forget the channel with its relay logs.
func (r *Replay) forget(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ending)
	defer cancel()
	for _, statement := range []string{"STOP REPLICA FOR CHANNEL '" + Channel + "'",
		"RESET REPLICA ALL FOR CHANNEL '" + Channel + "'"} {
		var answer *mysql.MySQLError
		if _, err := r.DB.ExecContext(ctx, statement); err != nil &&
			(!errors.As(err, &answer) || answer.Number != errChannelUnknown) {
			return fmt.Errorf("removing the channel of the archive: %w", err)
		}
	}
	return nil
}

// relayLogs asks where the server keeps them, and finds out how it takes them.
func (r *Replay) relayLogs(ctx context.Context) (relayLogs, error) {
	var base, index, data, version string
	err := r.DB.QueryRowContext(ctx, "SELECT @@GLOBAL.relay_log_basename, @@GLOBAL.relay_log_index, "+
		"@@GLOBAL.datadir, VERSION()").Scan(&base, &index, &data, &version)
	if err != nil {
		return relayLogs{}, fmt.Errorf("asking where the server keeps its relay logs: %w", err)
	}
	take, err := ours.TakeRelayLogs(version, Channel)
	if err != nil {
		return relayLogs{}, fmt.Errorf("replaying the archive: %w", err)
	}
	extension := filepath.Ext(index)
	return relayLogs{
		base:     base + "-" + Channel,
		index:    strings.TrimSuffix(index, extension) + "-" + Channel + extension,
		take:     take,
		relative: filepath.Clean(filepath.Dir(base)) == filepath.Clean(data),
	}, nil
}

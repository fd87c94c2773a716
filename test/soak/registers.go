package main

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/go-sql-driver/mysql"

	"cnmsql.co/test/testbed"
)

const (
	// Each window has registers of its own, so that a write whose fate is unknown does
	// not stay possible for the whole run.
	registerWindow     = 20 * time.Second
	registersAtOnce    = 3
	registerClients    = 4
	registerPace       = 50 * time.Millisecond
	registerTimeLimit  = 3 * time.Second
	registerCheckLimit = 2 * time.Minute
)

// access is what a client asked of a register; answer what it was told.
type access struct {
	register int
	write    int // 0: a read
}

// registers are a few rows that clients write and read through -rw. A read is a
// transaction that writes, too: a plain one may be answered from the past by a primary
// that was cut off and does not know yet.
type registers struct {
	cancel  context.CancelFunc
	clients sync.WaitGroup
	began   time.Time

	mu      sync.Mutex
	history []porcupine.Operation
	unknown int
	value   int
}

func startRegisters(ctx context.Context, e testbed.Endpoint) (*registers, error) {
	db, err := e.OpenWithin(registerTimeLimit)
	if err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS app.registers (id INT PRIMARY KEY, v INT NOT NULL, "+
		"looks INT NOT NULL)"); err != nil {
		return nil, err
	}
	r := &registers{began: time.Now()}
	ctx, r.cancel = context.WithCancel(ctx)
	for client := range registerClients {
		r.clients.Go(func() { r.run(ctx, db, client) })
	}
	go func() {
		r.clients.Wait()
		_ = db.Close()
	}()
	return r, nil
}

func (r *registers) run(ctx context.Context, db *sql.DB, client int) {
	for pause(ctx, registerPace) {
		window := int(time.Since(r.began) / registerWindow)
		a := access{register: window*registersAtOnce + rand.IntN(registersAtOnce)}
		if rand.IntN(2) == 0 {
			a.write = r.next()
		}
		call := time.Since(r.began)
		value, err := r.try(ctx, db, a)
		r.note(client, a, value, call, err)
	}
}

func (r *registers) next() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.value++
	return r.value
}

// try carries an access out; it counts once its commit is acknowledged.
func (r *registers) try(ctx context.Context, db *sql.DB, a access) (value int, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), registerTimeLimit)
	defer cancel()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, errors.Join(errNotBegun, err)
	}
	defer func() { _ = tx.Rollback() }()
	if a.write > 0 {
		_, err = tx.ExecContext(ctx, "INSERT INTO app.registers VALUES (?, ?, 0) ON DUPLICATE KEY UPDATE v = VALUES(v)",
			a.register, a.write)
	} else if _, err = tx.ExecContext(ctx,
		"INSERT INTO app.registers VALUES (?, 0, 1) ON DUPLICATE KEY UPDATE looks = looks + 1",
		a.register); err == nil {
		err = tx.QueryRowContext(ctx, "SELECT v FROM app.registers WHERE id = ?", a.register).Scan(&value)
	}
	if err != nil {
		return 0, errors.Join(errNotBegun, err) // without a COMMIT nothing has happened
	}
	return value, tx.Commit()
}

// errNotBegun says that the commit was not asked for, so that nothing was written.
var errNotBegun = errors.New("nothing was committed")

// note keeps what is known to have happened, and writes that may have: those end when
// everything does. A read that got no answer has told nobody anything.
func (r *registers) note(client int, a access, value int, call time.Duration, err error) {
	var answer *mysql.MySQLError
	refused := errors.Is(err, errNotBegun) || errors.As(err, &answer) && answer.Number == 1290
	r.mu.Lock()
	defer r.mu.Unlock()
	end := int64(time.Since(r.began))
	switch {
	case err == nil:
	case refused || a.write == 0:
		return
	default:
		r.unknown++
		end = math.MaxInt64
	}
	r.history = append(r.history, porcupine.Operation{ClientId: client, Input: a, Call: int64(call),
		Output: value, Return: end})
}

func (r *registers) stop() {
	r.cancel()
	r.clients.Wait()
}

// model is one register that answers reads with what was written last.
var model = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		by := map[int][]porcupine.Operation{}
		for _, op := range history {
			id := op.Input.(access).register
			by[id] = append(by[id], op)
		}
		var out [][]porcupine.Operation
		for _, ops := range by {
			out = append(out, ops)
		}
		return out
	},
	Init: func() any { return 0 },
	Step: func(state, input, output any) (bool, any) {
		if a := input.(access); a.write > 0 {
			return true, a.write
		}
		return output.(int) == state.(int), state
	},
}

// check tells whether the clients saw what one copy of the registers would have shown.
func (r *registers) check() porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(model, r.history, registerCheckLimit)
}

package clients

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"cnmsql.co/test/loadbench/workload"
)

// scene is a server, its connections, a workload and its client in one. The transactions have
// the results of its list, and then none fails any more.
type scene struct {
	results                   []error
	refuse                    error
	connected, closed, undone int
	tried                     int
}

func (s *scene) Connect(context.Context) (driver.Conn, error) {
	if s.refuse != nil {
		return nil, s.refuse
	}
	s.connected++
	return s, nil
}

func (s *scene) Driver() driver.Driver               { return nil }
func (s *scene) Name() string                        { return "scene" }
func (s *scene) Prepare(string) (driver.Stmt, error) { return nil, nil }
func (s *scene) Begin() (driver.Tx, error)           { return nil, nil }
func (s *scene) Close() error                        { s.closed++; return nil }
func (s *scene) RollBack() error                     { s.undone++; return nil }
func (s *scene) Transaction() error                  { s.tried++; return s.results[min(s.tried, len(s.results))-1] }
func (s *scene) client() *client                     { return &client{connector: s, workload: work{s}} }

// work is the scene's workload, whose Prepare is another than a connection's.
type work struct{ s *scene }

func (w work) Name() string                                        { return "work" }
func (w work) Prepare(context.Context, *sql.DB) error              { return nil }
func (w work) Client(driver.Conn, uint64) (workload.Client, error) { return w.s, nil }

func TestATransactionThatTheServerRefusedIsRolledBackOnItsConnection(t *testing.T) {
	s := &scene{results: []error{&mysql.MySQLError{Number: 1213}, nil}}
	c := s.client()
	if err := c.try(t.Context()); !workload.IsAnswer(err) {
		t.Errorf("it says %v", err)
	}
	if err := c.try(t.Context()); err != nil || s.connected != 1 || s.undone != 1 || s.closed != 0 || s.tried != 2 {
		t.Errorf("%v: %+v", err, s)
	}
}

func TestAfterALostConnectionAnotherIsMadeAndNothingIsRepeated(t *testing.T) {
	lost := errors.New("lost")
	s := &scene{results: []error{lost, nil}}
	c := s.client()
	if err := c.try(t.Context()); !errors.Is(err, lost) || s.tried != 1 || s.closed != 1 || c.conn != nil {
		t.Errorf("%v: %+v", err, s)
	}
	s.refuse = errors.New("nobody is there")
	if err := c.try(t.Context()); !errors.Is(err, s.refuse) || s.tried != 1 {
		t.Errorf("%v: %+v", err, s)
	}
	s.refuse = nil
	if err := c.try(t.Context()); err != nil || s.connected != 2 || s.tried != 2 || s.undone != 0 {
		t.Errorf("%v: %+v", err, s)
	}
}

func TestEveryTryIsKept(t *testing.T) {
	lost := errors.New("lost")
	s := &scene{results: []error{lost, nil}}
	c := s.client()
	ctx, cancel := context.WithCancel(t.Context())
	s.results = append(s.results, nil)
	c.workload = endsAfter{work{s}, 3, cancel}
	c.until(ctx, time.Now().Add(time.Hour))
	if len(c.done) != 3 || !errors.Is(c.done[0].err, lost) || c.done[1].err != nil ||
		c.done[2].ended.Before(c.done[2].begun) {
		t.Errorf("%+v", c.done)
	}
}

// endsAfter so many transactions.
type endsAfter struct {
	work
	n      int
	cancel context.CancelFunc
}

func (e endsAfter) Client(driver.Conn, uint64) (workload.Client, error) { return e, nil }
func (e endsAfter) RollBack() error                                     { return e.s.RollBack() }
func (e endsAfter) Transaction() error {
	err := e.s.Transaction()
	if e.s.tried == e.n {
		e.cancel()
	}
	return err
}

func TestARunThatCannotConnectSaysWhichConnection(t *testing.T) {
	s := &scene{refuse: errors.New("too many connections")}
	p := Plan{Workload: work{s}, Connections: 2}
	all := make([]*client, 2)
	err := p.connect(t.Context(), s, all)
	if !errors.Is(err, s.refuse) || err.Error() != "connection 1 of 2: too many connections" {
		t.Errorf("it says %v", err)
	}
}

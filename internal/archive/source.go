package archive

import (
	"errors"
	"io"
	"path/filepath"
	"slices"

	"cnmsql.co/internal/binlog"
	facts "cnmsql.co/internal/core/archive"
)

// source reads the transactions of a server's binary logs one after the other, across files.
type source struct {
	index string
	log   *binlog.Log
	path  string
	facts.Reader
}

func (s *source) close() {
	if s.log != nil {
		_ = s.log.Close()
	}
	s.log, s.path = nil, ""
}

// file is the name of the log that is being read.
func (s *source) file() string { return filepath.Base(s.path) }

// locate finds the log in which the first transaction stands that was not seen: the newest
// one before which all was seen. If there is none, what lacks was purged.
func (s *source) locate() error {
	logs, err := binlog.All(s.index)
	if err != nil {
		return err
	}
	for i, path := range slices.Backward(logs) {
		log, err := binlog.OpenLog(path)
		if errors.Is(err, binlog.ErrTorn) && i == len(logs)-1 && i > 0 {
			continue // it is just being begun
		}
		if err != nil {
			return err
		}
		if s.Begins(log.Previous) || i == 0 {
			s.enter(log, path)
			return nil
		}
		if err := log.Close(); err != nil {
			return err
		}
	}
	return binlog.ErrTorn
}

func (s *source) enter(log *binlog.Log, path string) {
	s.close()
	s.log, s.path = log, path
	s.Enter(log.Previous)
}

// next finds the next transaction that was not seen, and does not pass it. io.EOF if the
// log has no more now.
func (s *source) next() (binlog.Transaction, error) {
	for {
		t, err := s.log.Next()
		if errors.Is(err, binlog.ErrTorn) {
			return t, io.EOF
		}
		if err != nil || s.Wants(t.ID) {
			return t, err
		}
		s.log.Pass(t)
	}
}

func (s *source) pass(t binlog.Transaction) {
	s.log.Pass(t)
	s.Pass(t.ID)
}

// follower is the log behind the one that was read to its end; "" when there is none yet.
// again is set if this one is not in the index any more, or another file of its name is: a server
// whose logs were reset begins with the first name.
func (s *source) follower() (path string, again bool, err error) {
	logs, err := binlog.All(s.index)
	if err != nil {
		return "", false, err
	}
	i := slices.Index(logs, s.path)
	isThere := false
	if i >= 0 {
		if isThere, err = s.log.IsAt(s.path); err != nil {
			return "", false, err
		}
	}
	switch {
	case !isThere:
		return "", true, nil
	case i == len(logs)-1:
		return "", false, nil
	}
	return logs[i+1], false, nil
}

// advance goes to the next log if there is one, and this one has no more. The caller has
// dealt with all that it took from this one.
func (s *source) advance() (moved bool, err error) {
	path, again, err := s.follower()
	if err != nil || path == "" && !again {
		return false, err
	}
	if _, err := s.next(); !errors.Is(err, io.EOF) {
		return false, err // written between the look at the end and that at the index
	}
	if again {
		err := s.locate()
		return err == nil, err
	}
	log, err := binlog.OpenLog(path)
	if errors.Is(err, binlog.ErrTorn) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s.enter(log, path)
	return true, nil
}

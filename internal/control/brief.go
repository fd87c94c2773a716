package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"cnmsql.co/internal/core"
)

// message is a Snapshot as a stream carries it. An idle instance says the same each second;
// to read a report costs its listener more than all else it does for an idle cluster.
type message struct {
	Taken  int64           `json:"taken"`
	Made   int64           `json:"made"`
	Asked  int64           `json:"asked"`
	Report json.RawMessage `json:"report,omitempty"`
	// Same: the report is that of the message before.
	Same bool `json:"same,omitempty"`
}

// teller writes the messages of a stream.
type teller struct {
	to io.Writer
	// brief: whoever listens knows Same.
	brief bool
	last  []byte
}

func (t *teller) snapshot(s Snapshot) error {
	report, err := json.Marshal(s.Report)
	if err != nil {
		return err
	}
	m := message{Taken: s.Taken, Made: s.Made, Asked: s.Asked}
	if t.brief && bytes.Equal(report, t.last) {
		m.Same = true
	} else {
		m.Report, t.last = report, report
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = t.to.Write(append(text, '\n'))
	return err
}

// listener reads the messages of a stream.
type listener struct {
	from *messages
	last *core.Report
}

func (l *listener) next() (Snapshot, error) {
	var said message
	if err := l.from.read(&said); err != nil {
		return Snapshot{}, err
	}
	switch {
	case !said.Same:
		l.last = new(core.Report)
		if err := l.from.understand(said.Report, l.last); err != nil {
			return Snapshot{}, err
		}
	case l.last == nil:
		return Snapshot{}, errors.New("an instance begins with a report that is that of the message before")
	}
	return Snapshot{Taken: said.Taken, Made: said.Made, Asked: said.Asked, Report: *l.last, Repeats: said.Same}, nil
}

package clone

// sequence is the order in which records come, whoever they come from: what has been
// seen, and so what may be next.
type sequence struct {
	state State
	// within: the state has started and not ended.
	within bool
	begun  bool // the task was seen
	// missing is the number of files that FileCopy has announced and not sent.
	missing uint32
	// files and redo are the indices that data may refer to.
	files, redo map[uint32]struct{}
}

func newSequence() *sequence {
	return &sequence{state: StateInit, within: true, files: map[uint32]struct{}{}, redo: map[uint32]struct{}{}}
}

// next takes the next record, or says what is wrong with it. For a block it changes
// nothing.
func (q *sequence) next(r Record) error {
	if err := r.check(); err != nil {
		return err
	}
	switch d := r.Descriptor.(type) {
	case Task:
		if q.begun || d.Task != 0 || q.state != StateInit {
			return refuse(Malformed, "task %d in state %s", d.Task, q.state)
		}
		q.begun = true
		return nil
	case StateChange:
		return q.change(d)
	case File:
		return q.file(d)
	case Block:
		return q.block(d)
	}
	return refuse(Malformed, "a locator among the records")
}

func (q *sequence) change(d StateChange) error {
	switch {
	case d.KeepAlive():
		return refuse(Malformed, "a sign of life among the records")
	case d.Start() && !q.within && d.State == q.state+1:
		q.state, q.within = d.State, true
		if d.State == StateFileCopy {
			q.missing = d.Files
		}
		return nil
	case !d.Start() && q.within && d.State == q.state && d.State != StateDone:
		q.within = false
		return q.complete()
	}
	return refuse(Malformed, "state %s (start: %v) after %s", d.State, d.Start(), q.state)
}

// complete refuses a state whose end comes before all files that were announced have come.
func (q *sequence) complete() error {
	if q.missing > 0 {
		return refuse(Malformed, "%d of the files that were announced do not come", q.missing)
	}
	return nil
}

func (q *sequence) file(d File) error {
	if q.ddl(d) {
		if d.Name == "" || d.State == StateFileCopy {
			return refuse(Malformed, "file %d changes before state %s", d.Index, d.State)
		}
		q.files[d.Index] = struct{}{}
		return nil
	}
	if !q.within || d.State != q.state {
		return refuse(Malformed, "file %d of state %s in state %s", d.Index, d.State, q.state)
	}
	switch {
	case d.State == StateRedoCopy && d.Name == "":
		if d.Index >= maxRedoFiles {
			return refuse(Malformed, "redo file %d", d.Index)
		}
		q.redo[d.Index] = struct{}{}
	case d.Flags&fileDeleted != 0 && d.Name != "": // it is being dropped
		q.files[d.Index] = struct{}{}
	case d.State == StateFileCopy && d.Name != "":
		if _, again := q.files[d.Index]; again || q.missing == 0 {
			return refuse(Malformed, "file %d comes twice or was not announced", d.Index)
		}
		q.missing--
		q.files[d.Index] = struct{}{}
	default:
		return refuse(Malformed, "file %d named %q with flags %#x in state %s", d.Index, d.Name, d.Flags, d.State)
	}
	return nil
}

// maxRedoFiles is many times the 32 files that a redo log has.
const maxRedoFiles = 1024

// ddl tells a file that changed meanwhile: it belongs to the next state and comes before it.
func (q *sequence) ddl(d File) bool { return !q.within && d.State == q.state+1 && q.state >= StateInit }

func (q *sequence) block(d Block) error {
	if !q.within || d.State != q.state {
		return refuse(Malformed, "data of state %s in state %s", d.State, q.state)
	}
	if err := q.complete(); err != nil {
		return err
	}
	var known bool
	switch d.State {
	case StateFileCopy, StatePageCopy:
		_, known = q.files[d.File]
	case StateRedoCopy:
		_, known = q.redo[d.File]
	}
	if !known {
		return refuse(Malformed, "data of state %s for file %d, of which nothing is known", d.State, d.File)
	}
	return nil
}

// finished refuses a snapshot that is not complete when its records end.
func (q *sequence) finished() error {
	if q.state != StateDone {
		return refuse(Incomplete, "an end in state %s", q.state)
	}
	return nil
}

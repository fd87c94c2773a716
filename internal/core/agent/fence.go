package agent

import "cnmsql.co/internal/core"

// fenced stops mysqld when a human took this instance out of service. It does not break
// off the making of data.
func fenced(f *Facts) (Decision, bool) {
	switch {
	case !f.listedFenced() || f.Activity == Initializing || f.Activity == Restoring || f.Activity == Cloning:
		return pass()
	case f.Activity == Stopping || f.Mysqld.Up && f.Activity != NoActivity:
		return tell(core.Running, core.InstanceFencing, "mysqld is being stopped, because this instance is fenced")
	case f.Mysqld.Up:
		return tell(core.Running, core.InstanceFencing, "mysqld is being stopped, because this instance is fenced",
			StopServer{Why: "the instance is fenced"})
	}
	return tell(core.Fenced, core.InstanceIsFenced, "it is fenced: mysqld is stopped, data is kept; kubectl cnmsql "+
		"fence off brings it back")
}

// unfencing tells of an instance that was fenced and comes back that it does so, for it is no
// failed one on its way back.
func unfencing(f *Facts, d Decision) Decision {
	back := f.Mysqld.Answers && (!f.Permitted() || f.WritableEpoch != 0)
	switch d.State {
	case core.Stopped, core.Recovering, core.Running:
		if f.WasFenced && !back && f.TerminatingSince.IsZero() {
			d.State, d.Reason, d.Message = core.Fenced, core.InstanceUnfencing, "it was fenced, and comes back"
		}
	}
	return d
}

package verify

import (
	"fmt"
	"slices"
	"time"

	"cnmsql.co/internal/gtid"
)

const (
	// sampleLimit is how long the Cluster's tables may be summed up before the verification
	// goes on without, and silenceLimit the same when the instance does not answer: its manager
	// may be of a release that knows nothing of it.
	sampleLimit  = 30 * time.Minute
	silenceLimit = 2 * time.Minute
	// targetLimit is how long a set of GTIDs may be that a restore can be told to end at.
	targetLimit = 4096
)

// Sum is what the rows of a table add up to.
type Sum struct {
	Table string `json:"table"`
	Rows  uint64 `json:"rows"`
	Sum   string `json:"sum"`
}

// Sample is what the rows of some tables of the Cluster added up to at one moment.
type Sample struct {
	// Executed is what the server had executed at that moment, as gtid_executed has it.
	Executed string `json:"executed,omitempty"`
	Sums     []Sum  `json:"sums,omitempty"`
	// Changed is how many tables were written to meanwhile, so that nothing is said of them.
	Changed int `json:"changed,omitempty"`
}

// Sampling is what the instance of the Cluster says whose tables are summed up.
type Sampling struct {
	Asked, Done        bool
	Unreachable, Error string
	Sample             Sample
}

// sampling are the steps before the copy is made.
var sampling = []step{
	{"go on without a sample", func(f *Facts) bool {
		limit := sampleLimit
		if f.Sampling.Unreachable != "" {
			limit = silenceLimit
		}
		cannot := f.Sampler == "" || f.Sampling.Error != "" || f.Now.Sub(f.Record.Started) > limit
		return f.Record.Phase == TakingSample && cannot
	}, (*Facts).skipSample},
	{"sample", func(f *Facts) bool { return f.Record.Phase == TakingSample && !f.Sampling.Done },
		func(f *Facts, p *Plan) {
			p.Sample, p.Wake = true, time.Second
			p.Record.Message = "rows of the Cluster are summed up by " + f.Sampler
			if f.Sampling.Unreachable != "" {
				p.Record.Message, p.Wake = f.Sampler+" does not answer: "+f.Sampling.Unreachable, lookAgain
			}
		}},
	{"note the sample", func(f *Facts) bool { return f.Record.Phase == TakingSample }, (*Facts).noteSample},
	{"wait until the sample is archived", func(f *Facts) bool {
		begun := f.Record.Copy != "" || f.Copy.Exists
		return f.Record.Sample != nil && !begun && f.Now.Before(f.Record.SampledAt.Add(f.ArchiveDelay))
	}, func(f *Facts, p *Plan) {
		p.Wake = min(lookAgain, f.Record.SampledAt.Add(f.ArchiveDelay).Sub(f.Now))
		p.Record.Message = fmt.Sprintf("it waits until %s, because the data of the sample must be archived first",
			f.Record.SampledAt.Add(f.ArchiveDelay).UTC().Format(time.RFC3339))
	}},
}

// skipSample goes on without a comparison, and keeps why.
func (f *Facts) skipSample(p *Plan) {
	why := "it took too long to sum up rows of the Cluster"
	switch {
	case f.Sampling.Error != "":
		why = f.Sampling.Error
	case f.Sampler == "":
		why = f.NoSampler
	case f.Sampling.Unreachable != "":
		why = f.Sampler + " did not answer: " + f.Sampling.Unreachable
	}
	p.Record.NotCompared = why
	goOn(p)
}

func goOn(p *Plan) {
	p.Record.Phase, p.Wake = Restoring, time.Second
	p.Record.Message = "a throw-away Cluster is made, into which the newest backup is restored"
}

func (f *Facts) noteSample(p *Plan) {
	r, s := &p.Record, f.Sampling.Sample
	goOn(p)
	switch {
	case len(s.Sums) == 0 && s.Changed > 0:
		r.NotCompared = fmt.Sprintf("all %d tables that were looked at were written to meanwhile", s.Changed)
	case len(s.Sums) == 0:
		r.NotCompared = "no table of an application is small enough to be summed up"
	case len(s.Executed) > targetLimit:
		r.NotCompared = "gtid_executed is too long for a restore to be told to end there"
	default:
		r.Sample, r.SampledAt = &s, f.Now
	}
}

// compare finds the tables whose rows are not those of the sample. Where the restored server
// did not stop at the moment of the sample, nothing can be said.
func (f *Facts) compare() (differ []Finding, compared int, not string) {
	s := f.Record.Sample
	if s == nil {
		return nil, 0, f.Record.NotCompared
	}
	at, err := gtid.Parse(s.Executed)
	if err != nil || !f.Check.Executed.Contains(at) || !beyond(f.Check.Executed, at).IsEmpty() {
		return nil, 0, "the restored server did not end at the transaction at which rows of the Cluster were summed up"
	}
	for _, was := range s.Sums {
		i := slices.IndexFunc(f.Check.Sums, func(is Sum) bool { return is.Table == was.Table })
		switch {
		case i < 0:
			differ = append(differ, Finding{was.Table, "it is missing, or cannot be read"})
		case f.Check.Sums[i].Rows != was.Rows:
			differ = append(differ, Finding{was.Table,
				fmt.Sprintf("%d rows, and %d in the Cluster", f.Check.Sums[i].Rows, was.Rows)})
		case f.Check.Sums[i].Sum != was.Sum:
			differ = append(differ, Finding{was.Table,
				fmt.Sprintf("%d rows, not all of them those of the Cluster", was.Rows)})
		}
	}
	return differ, len(s.Sums), ""
}

// beyond is what a set has of the servers of another one, and that one has not. What the
// restored server wrote itself, with numbers of its own, is not among it.
func beyond(set, at gtid.Set) (out gtid.Set) {
	more := set.Subtract(at)
	for _, source := range at.Sources() {
		out = out.Union(more.Of(source))
	}
	return out
}

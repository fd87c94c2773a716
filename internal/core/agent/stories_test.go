package agent

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// TestStories reads testdata as stories: each directive changes what the instance
// db-1 knows, "decide" prints what it does about it. Run with -rewrite to write
// the answers again, and read them.
//
//	new                    an instance with an empty volume, a cluster without a primary
//	replica                populated, running, following the primary db-2 of epoch 3
//	newmember              an empty volume, a group g-1 that db-1 is to make
//	member                 an online secondary of the group g-1 in epoch 3, db-2 is its primary
//	group k=v …            name made by of reboot bootstraps tried failed settled admitted ordered addresses protocol
//	                       excluded held held-rejoin held-expel quorate forgot gone-on quorum online last
//	view k=v …             of mysqld: state role others=db-2:ONLINE:PRIMARY,… ; none
//	primary                populated, writable in epoch 3, the lease held
//	cluster k=v …          epoch promotion=who@epoch proof pod node required acks current
//	                       established diverged instances members durability lease leased deleting
//	                       generation gives-data failover-from since
//	me k=v …               data fenced frozen was-primary acks@epoch locked foreign activity
//	                       tail word moved
//	                       away vouched was-fenced writable lease donor restart problem terminating asking received
//	                       maintenance statements may-lack
//	mysqld k=v …           up accepted answers stalled may-write ended failures login
//	server k=v …           executed retrieved source io sql sqlerror sqltried ioerror gives-acks requires-acks
//	                       clients waits offline; none
//	position k=v …         of db-2: mine executed logged writable lacking purged seen grouped sees; none
//	others k=v …           of its own transactions others hold: asked ended db-2=1-100 empty=db-2
//	pass 3s                time goes by; the lease is renewed, unless away
//	vouch db-2 3           a primary asks for a vouch in an epoch
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &story{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return s.run(t, d)
		})
	})
}

type story struct {
	f *Facts
	// away: neither the API server nor peers can be reached.
	away bool
}

var epochZero = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (s *story) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "new":
		s.f = fresh()
	case "replica":
		s.f = replica()
	case "primary":
		s.f, s.away = primary(), false
	case "newmember":
		s.f = newMember()
	case "member":
		s.f = member()
	case "pass":
		by, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		s.f.Now = s.f.Now.Add(by)
		if !s.away && s.f.LeaseEpoch != 0 {
			s.f.LeaseRenewed = s.f.Now
		}
	case "decide":
		return show(Decide(s.f))
	case "vouch":
		if no := Vouch(s.f, d.CmdArgs[0].Key, number(d.CmdArgs[1].Key)); no != nil {
			return no.String()
		}
		return "yes"
	default:
		set := map[string]func(*story, string, string) bool{"cluster": (*story).cluster, "me": (*story).me,
			"group": (*story).group, "view": (*story).view, "mysqld": (*story).mysqld, "server": (*story).server,
			"position": (*story).position, "others": (*story).others}[d.Cmd]
		if set == nil {
			d.Fatalf(t, "nobody knows the directive %s", d.Cmd)
		}
		for _, a := range d.CmdArgs {
			if value := strings.Join(a.Vals, ","); !set(s, a.Key, value) {
				d.Fatalf(t, "%s does not know %s=%s", d.Cmd, a.Key, value)
			}
		}
	}
	return ""
}

func replica() *Facts {
	f := populated()
	f.Cluster.CurrentPrimary = "db-2"
	f.Cluster.Promotion = &core.Promotion{Epoch: 3, Instance: "db-2"}
	f.Replicating = "db-2"
	f.Server.Replication = &core.Replication{SourceHost: "db-2", IORunning: true, SQLRunning: true}
	return f
}

func primary() *Facts {
	f := populated()
	f.Cluster.CurrentPrimary = "db-1"
	f.Cluster.Promotion = &core.Promotion{Epoch: 3, Instance: "db-1", PodUID: "pod-1", Node: "node-1"}
	f.WritableEpoch, f.LeaseEpoch, f.WasPrimaryEpoch, f.Mysqld.MayWrite = 3, 3, 3, true
	f.LeaseRenewed = f.Now
	f.Server.SuperReadOnly = false
	return f
}

const source = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"

// set reads 1-100 as transactions of the source a, and b:1-5 as of another.
func set(text string) gtid.Set {
	if text == "" {
		return gtid.Set{}
	}
	var parts []string
	for _, p := range strings.Split(text, ",") {
		if rest, other := strings.CutPrefix(p, "b:"); other {
			parts = append(parts, strings.ReplaceAll(source, "a", "b")+":"+rest)
			continue
		}
		parts = append(parts, source+":"+p)
	}
	return gtid.MustParse(strings.Join(parts, ","))
}

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func (s *story) tail(key, value string) bool {
	switch key {
	case "moved": // what goes on gets on now
		s.f.MovedAt = s.f.Now
	case "tail":
		s.f.TailEpoch = number(value)
	case "may-lack":
		s.f.MayLack = value != "no"
	case "tail-base":
		s.f.TailBase = set(value)
	case "word": // who is promoted, and when, asked now
		who, at, _ := strings.Cut(value, "@")
		s.f.Word = &Word{At: s.f.Now, Instance: who, Epoch: number(at)}
	default:
		return false
	}
	return true
}

func (s *story) me(key, value string) bool {
	f := s.f
	switch key {
	case "data":
		f.Data = core.DataState(value)
	case "fenced":
		f.NoWritesBelow = number(value)
	case "frozen":
		f.NoReceivingBelow = number(value)
	case "was-primary":
		f.WasPrimaryEpoch = number(value)
	case "acks":
		n, at, _ := strings.Cut(value, "@")
		f.Acks, f.AcksEpoch = int(number(n)), number(at)
	case "locked":
		f.Locked = value != "no"
	case "foreign":
		f.Foreign = true
	case "activity":
		f.Activity = Activity(value)
	case "writable":
		f.WritableEpoch = number(value)
	case "lease":
		f.LeaseEpoch, f.LeaseRenewed = number(value), f.Now
	case "confirmed":
		f.ConfirmedEpoch = number(value)
	case "maintenance":
		f.Maintenance = set(value)
	case "statements":
		f.Statements = []string{strings.ReplaceAll(value, "_", " ")}
	case "away":
		s.away = value != "no"
	case "vouched":
		f.Vouches = nil
		for _, name := range strings.Split(value, ",") {
			f.Vouches = append(f.Vouches, Given{Instance: name, At: f.Now})
		}
	case "was-fenced":
		f.WasFenced = value != "no"
	case "donor", "clone-error", "source-host":
		*map[string]*string{"donor": &f.Donor, "clone-error": &f.CloneError, "source-host": &f.SourceHost}[key] = value
	case "restart":
		f.RestartEpoch = number(value)
	case "problem":
		f.Problem = &Problem{Problem: core.Problem{Reason: core.Reason(value), Message: "…"},
			Generation: f.Cluster.Generation, RetryAt: f.Now.Add(time.Minute)}
	case "terminating":
		f.TerminatingSince = f.Now
	case "asking":
		f.Asking = value != "no"
	case "receive-failed":
		f.ReceiveFailedAt = f.Now
	default:
		return s.tail(key, value)
	}
	return true
}

func (s *story) mysqld(key, value string) bool {
	m, yes := &s.f.Mysqld, value != "no"
	switch key {
	case "up":
		m.Up = yes
		m.StartedAt = s.f.Now
	case "down":
		*m = Mysqld{DownSince: s.f.Now, Ended: value == "crashed"}
		s.f.Server, s.f.WritableEpoch = nil, 0
	case "accepted":
		m.Accepted = yes
	case "answers":
		if m.Answers = yes; yes {
			m.AnsweredAt = s.f.Now
		}
	case "stalled":
		m.DiskStalled = yes
	case "to-end":
		m.ToEnd = yes
	case "lacks-space":
		m.LacksSpace = yes
	case "ending":
		m.Ending, m.AnsweredAt = yes, s.f.Now
	case "may-write":
		m.MayWrite = yes
	case "failures":
		m.Failures = int(number(value))
	case "data-removed":
		m.DataRemoved = yes
	case "login":
		m.LoginRefused = value == "refused"
	default:
		return false
	}
	return true
}

func (s *story) server(key, value string) bool {
	if s.f.Server == nil {
		s.f.Server = &core.Server{SuperReadOnly: true}
	}
	if key == "none" {
		s.f.Server = nil
		return true
	}
	if key == "executed" {
		s.f.Server.Executed = set(value)
		return true
	}
	if key == "offline" {
		s.f.Server.Offline = value != "no"
		return true
	}
	switch semi := &s.f.Server.SemiSync; key {
	case "gives-acks":
		semi.ReplicaEnabled = value != "no"
	case "requires-acks":
		semi.SourceEnabled = value != "no"
	case "clients":
		semi.Clients = int(number(value))
	case "waits":
		semi.WaitSessions = int(number(value))
	default:
		return s.channel(key, value)
	}
	return true
}

func (s *story) channel(key, value string) bool {
	if s.f.Server.Replication == nil {
		s.f.Server.Replication = &core.Replication{}
	}
	r := s.f.Server.Replication
	switch key {
	case "source":
		if r.SourceHost, s.f.Replicating = value, value; value == "none" {
			s.f.Server.Replication, s.f.Replicating = nil, ""
		}
	case "retrieved":
		r.Retrieved = set(value)
	case "io":
		r.IORunning, r.IOConnecting = value == "yes", value == "connecting"
	case "sql":
		r.SQLRunning = value == "yes"
	case "sqlerror":
		r.SQLError, r.CopyHinders = value, value == "3874"
	case "sqltried": // the applier was started just now
		s.f.ApplyTriedAt = s.f.Now
	case "nospace":
		r.NoSpace = value == "yes"
	case "ioerror":
		r.IOError = value
	case "ioerrno":
		r.IOErrno = int(number(value))
		if r.IOErrno == 1045 {
			r.Refused = core.RefusedLogin
		}
	default:
		return false
	}
	return true
}

func (s *story) position(key, value string) bool {
	if s.f.Primary == nil {
		s.f.Primary = &Position{Instance: "db-2", Epoch: s.f.Cluster.Epoch, At: s.f.Now, InGroup: true}
	}
	p := s.f.Primary
	switch key {
	case "none":
		s.f.Primary = nil
	case "of":
		p.Instance = value
	case "mine":
		p.Mine = set(value)
	case "lacking":
		p.LackingSince = p.At.Add(-time.Duration(number(value)) * time.Second)
	case "executed":
		p.Executed = set(value)
	case "logged":
		p.Logged = set(value)
	case "writable":
		p.WritableEpoch = number(value)
	case "purged":
		p.Purged = set(value)
	case "seen":
		p.SeenEpoch = number(value)
	case "grouped":
		p.InGroup = value != "no"
	case "sees":
		p.View = strings.Split(value, ",")
	default:
		return false
	}
	return true
}

var longUUID = regexp.MustCompile(`([ab])[ab]{7}(-[ab]+){4}`)

func show(d Decision) string {
	var b strings.Builder
	b.WriteString(string(d.State))
	if d.Reason != "" {
		b.WriteString(" " + string(d.Reason))
	}
	if d.Message != "" {
		b.WriteString(": " + d.Message)
	}
	b.WriteString("\n")
	if !d.Errant.IsEmpty() {
		fmt.Fprintf(&b, "errant: %s\n", d.Errant)
	}
	if d.NeedsReclone {
		b.WriteString("needs to be cloned again\n")
	}
	for _, a := range d.Actions {
		fmt.Fprintf(&b, "- %s\n", a)
	}
	return longUUID.ReplaceAllString(b.String(), "$1")
}

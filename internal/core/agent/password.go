package agent

import (
	"time"

	"cnmsql.co/internal/core"
)

// SecretPatience is for how long a mounted Secret may be older than another Pod's: kubelets bring
// a change within a minute or two, each at its own time.
const SecretPatience = 3 * time.Minute

// PasswordFacts are what the manager of a server that takes writes knows of the password that an
// account has in its Secret, as this Pod has it. The server's data tell which passwords of Secrets
// the account was given before, by whichever primary.
type PasswordFacts struct {
	// Recorded tells whether the data tell it.
	Recorded bool
	// Place is where the Secret's password stands among them: 0 is the newest, and less it is none
	// of them.
	Place int
	// Held tells whether this manager has seen the Secret with the newest of them, since the
	// server takes writes.
	Held bool
	// Agreed tells, where the data tell nothing, whether it is remembered on the volume that the
	// Secret as it is was followed.
	Agreed bool
	// ByHand tells whether somebody made the account since: the data tell of no Secret that it followed, but
	// of those of others. Changed tells that the Secret is another now than the one that was followed last.
	ByHand, Changed bool
	// Unchanged is for how long the Secret was seen as it is, since the server takes writes.
	Unchanged time.Duration
}

// PasswordStep is what is done about an account's password.
type PasswordStep int

// Steps. The server's word is not asked for: an attempt to log in that is refused could lock the
// account.
const (
	// KeepPassword leaves the password as it is: the Secret has not changed since it was followed.
	// What somebody did to the account by hand stays.
	KeepPassword PasswordStep = iota
	// NotePassword leaves the password as it is, and tells the data that the Secret was followed.
	NotePassword
	// SetPassword gives the account the Secret's password.
	SetPassword
	// AwaitSecret waits, for the account had this password before the one that it has. Either the
	// Secret was set back, or the kubelet here is slower than the one of the primary that set the
	// newer one: a password of the past is not set again before that can be told apart.
	AwaitSecret
)

// Step decides it.
func (f PasswordFacts) Step() PasswordStep {
	switch {
	case !f.Recorded && (f.Agreed || f.ByHand && !f.Changed):
		return NotePassword
	case !f.Recorded || f.Place < 0:
		return SetPassword
	case f.Place == 0:
		return KeepPassword
	case f.Held || f.Unchanged >= SecretPatience:
		return SetPassword
	default:
		return AwaitSecret
	}
}

// MayChangeAccounts reports whether a statement that changes an account would wait for nobody, by what a server
// that takes writes has said last. One that waits keeps everybody from logging in and from setting anything:
// replicas that are to acknowledge it, and whoever would have a group without its majority go on.
func MayChangeAccounts(s *core.Server) bool {
	if s.HasView() && !s.Group.IsQuorate() {
		return false
	}
	c := s.SemiSync
	return !c.LocksAccounts && (!c.SourceEnabled || c.WaitSessions == 0 && c.Clients >= c.Acks)
}

package agent

import "testing"

func TestThePasswordOfASecretIsFollowedWhoeverIsThePrimary(t *testing.T) {
	for what, c := range map[string]struct {
		facts PasswordFacts
		want  PasswordStep
	}{
		"a Secret that was followed, here or by another primary": {
			PasswordFacts{Recorded: true, Place: 0}, KeepPassword},
		"one that changed while nobody took writes, or before a failover lost the change": {
			PasswordFacts{Recorded: true, Place: -1}, SetPassword},
		"the data of another cluster, or of an earlier release": {PasswordFacts{}, SetPassword},
		"an earlier release has followed it on this volume":     {PasswordFacts{Agreed: true}, NotePassword},
		"what the volume remembers counts for less than the data": {
			PasswordFacts{Recorded: true, Place: -1, Agreed: true}, SetPassword},
		"this kubelet may be slower than the former primary's": {
			PasswordFacts{Recorded: true, Place: 1, Agreed: true, Unchanged: SecretPatience - 1}, AwaitSecret},
		"it is not: the Secret was set back": {
			PasswordFacts{Recorded: true, Place: 1, Unchanged: SecretPatience}, SetPassword},
		"this Pod had the newer one: the Secret was set back": {
			PasswordFacts{Recorded: true, Place: 3, Held: true}, SetPassword},
	} {
		if got := c.facts.Step(); got != c.want {
			t.Errorf("%s: step %d, want %d", what, got, c.want)
		}
	}
}

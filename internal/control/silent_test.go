package control

import (
	"context"
	"strings"
	"testing"
	"time"
)

// hanging is an instance that says these snapshots, and then hangs: its connection stands,
// and answers pings.
type hanging struct{ talker }

func (in hanging) Watch(ctx context.Context, send func(Snapshot) error) error {
	if err := in.talker.Watch(ctx, send); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

func TestAManagerThatHangsIsNotBelievedForEver(t *testing.T) {
	for name, words := range map[string][]Snapshot{"before its first word": nil, "after a word": {says(2, "one")}} {
		t.Run(name, func(t *testing.T) {
			c, _ := stream(t, status(hanging{talker{says: words}}))
			c.silence = 100 * time.Millisecond
			heard := 0
			err := c.Watch(t.Context(), func(Snapshot) { heard++ })
			if err == nil || !strings.Contains(err.Error(), "said nothing for 100ms, though its connection stands") {
				t.Errorf("the stream ended so: %v", err)
			}
			if heard != len(words) {
				t.Errorf("%d words were heard", heard)
			}
		})
	}
}

func TestWhoListensSlowlyDoesNotTakeAManagerForSilent(t *testing.T) {
	c, _ := stream(t, status(talker{says: []Snapshot{says(2, "one"), says(3, "two"), says(4, "three")}}))
	c.silence = 200 * time.Millisecond
	heard := 0
	err := c.Watch(t.Context(), func(Snapshot) {
		heard++
		time.Sleep(2 * c.silence)
	})
	if heard != 3 || strings.Contains(err.Error(), "nothing") {
		t.Errorf("%d words were heard, and the stream ended so: %v", heard, err)
	}
}

func TestAStreamThatIsNotWantedAnyMoreEndsSo(t *testing.T) {
	c, _ := stream(t, status(hanging{talker{says: []Snapshot{says(2, "one")}}}))
	ctx, cancel := context.WithCancel(t.Context())
	err := c.Watch(ctx, func(Snapshot) { cancel() })
	if err == nil || strings.Contains(err.Error(), "nothing") {
		t.Errorf("the stream ended so: %v", err)
	}
}

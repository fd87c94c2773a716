package clone

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// TestTwoServersBehindOneAddressAreRefused holds that neither server is asked for a clone when the
// connections reach two, and that both are named.
func TestTwoServersBehindOneAddressAreRefused(t *testing.T) {
	for _, behind := range []string{
		"99999999-71ca-11e1-9e33-c80aa9429562 db-2 3306",
		"3e11fa47-71ca-11e1-9e33-c80aa9429562 db-2 3306", // whose files were copied with its UUID
	} {
		donor := fakeDonor{behind: behind, play: func(*conn) error {
			t.Error("the donor was asked for data")
			return io.EOF
		}}
		err := donor.against(t.Context(), t, new(list), 5*time.Second)
		if !errors.Is(err, TwoServers) {
			t.Fatalf("%v", err)
		}
		for _, said := range []string{"db-1 3306", behind, "TwoServers", "give the address of one server"} {
			if !strings.Contains(err.Error(), said) {
				t.Errorf("%q is not in %q", said, err)
			}
		}
		if donor.begun.Load() != 0 || len(donor.givenUp) > 0 {
			t.Errorf("%d connections were asked for a clone", donor.begun.Load())
		}
	}
}

// TestBothConnectionsToOneServerGoOver holds that one server is asked for a clone on both connections.
func TestBothConnectionsToOneServerGoOver(t *testing.T) {
	donor := fakeDonor{play: whole(scene()...)}
	must(t, donor.against(t.Context(), t, new(list), 5*time.Second))
	if donor.begun.Load() != 2 {
		t.Errorf("%d connections were asked for a clone", donor.begun.Load())
	}
}

// asked is what a question gets from a server that answers with packets.
func asked(t *testing.T, packets ...[]byte) (string, error) {
	t.Helper()
	ours, theirs := pipe(t)
	go func() {
		if _, err := theirs.read(); err != nil {
			return
		}
		for _, p := range packets {
			if theirs.write(p) != nil {
				return
			}
		}
		_ = theirs.Close()
	}()
	return ours.query("SELECT 1")
}

func TestAQuestionIsAnsweredByOneText(t *testing.T) {
	one, column, end := []byte{1}, []byte("\x03def"), []byte{replySwitch, 0, 0, 2, 0}
	for _, length := range []int{0, 1, 250, 251, 300} {
		want := strings.Repeat("h", length)
		if got, err := asked(t, one, column, end, row(want), end); err != nil || got != want {
			t.Errorf("of %d bytes %d arrive: %v", len(want), len(got), err)
		}
	}
	denied := append([]byte{replyError, 0x15, 0x04}, "#28000Access denied"...)
	for name, c := range map[string]struct {
		packets [][]byte
		why     *Reason
	}{
		"an error":              {[][]byte{denied}, LoginDenied},
		"an error in the rows":  {[][]byte{one, column, end, denied}, LoginDenied},
		"an error at the end":   {[][]byte{one, column, end, row("a"), denied}, LoginDenied},
		"no result":             {[][]byte{{replyOK, 0, 0}}, Malformed},
		"two columns":           {[][]byte{{2}}, Malformed},
		"no end of the columns": {[][]byte{one, column, row("a")}, Malformed},
		"no row":                {[][]byte{one, column, end, end}, Malformed},
		"no value":              {[][]byte{one, column, end, {nullColumn}}, Malformed},
		"a row that is short":   {[][]byte{one, column, end, {5, 'a'}}, Malformed},
		"a row without bytes":   {[][]byte{one, column, end, {}}, Malformed},
		"two rows":              {[][]byte{one, column, end, row("a"), row("b")}, Malformed},
		"a connection's end":    {[][]byte{one, column}, ConnectionLost},
	} {
		if got, err := asked(t, c.packets...); !errors.Is(err, c.why) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

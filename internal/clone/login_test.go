package clone

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net"
	"testing"
	"time"
)

// pipe is a connection and its other end.
func pipe(t *testing.T) (ours, theirs *conn) {
	a, b := net.Pipe()
	t.Cleanup(func() { _ = a.Close(); _ = b.Close() })
	return newConn(a, 5*time.Second), newConn(b, 5*time.Second)
}

func TestAPacketOf16MiBContinues(t *testing.T) {
	for _, size := range []int{0, 1, frameMax - 1, frameMax, frameMax + 1, 2 * frameMax} {
		ours, theirs := pipe(t)
		ours.limit = 3 * frameMax
		sent := make(chan error, 1)
		go func() { sent <- theirs.write(make([]byte, size)) }()
		got, err := ours.read()
		if err != nil || len(got) != size || <-sent != nil {
			t.Errorf("of %d bytes %d arrive, %v", size, len(got), err)
		}
		if ours.seq != theirs.seq || int(ours.seq) != size/frameMax+1 {
			t.Errorf("%d bytes are %d and %d frames", size, ours.seq, theirs.seq)
		}
	}
}

func TestAPacketBeyondTheLimitIsNotRead(t *testing.T) {
	ours, theirs := pipe(t)
	go func() { _, _ = theirs.Write([]byte{0xff, 0xff, 0xff, 0}) }()
	if _, err := ours.read(); !errors.Is(err, Malformed) {
		t.Errorf("%v", err)
	}
	if cap(ours.buf) > maxPacket {
		t.Errorf("a buffer of %d bytes was made", cap(ours.buf))
	}
}

func TestAFrameOutOfOrderIsRefused(t *testing.T) {
	ours, theirs := pipe(t)
	go func() { _, _ = theirs.Write([]byte{1, 0, 0, 7, 0}) }()
	if _, err := ours.read(); !errors.Is(err, Malformed) {
		t.Errorf("%v", err)
	}
}

// greeting is a server's first packet.
func greeting(has uint32, nonce []byte) []byte {
	b := append([]byte{handshakeVersion}, "9.7.4\x00"...)
	b = append(append(append(b, 1, 0, 0, 0), nonce[:8]...), 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(has))
	b = append(b, charsetUTF8MB4, 2, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(has>>16))
	b = append(append(b, nonceSize+1), make([]byte, 10)...)
	return append(append(append(append(b, nonce[8:]...), 0), authPlugin...), 0)
}

func TestAGreetingIsReadOrRefused(t *testing.T) {
	nonce := []byte("12345678901234567890")
	good := greeting(capabilities, nonce)
	if got, err := parseGreeting(good); err != nil || !bytes.Equal(got, nonce) {
		t.Errorf("%q, %v", got, err)
	}
	for name, c := range map[string]struct {
		packet []byte
		why    *Reason
	}{
		"nothing":         {nil, UnknownVersion},
		"another version": {[]byte{9, 0}, UnknownVersion},
		"too short":       {good[:40], Malformed},
		"no TLS":          {greeting(capabilities&^capabilityTLS, nonce), NeedsTLS},
		"an old server":   {greeting(capabilities&^capabilityPluginAuth, nonce), UnknownVersion},
	} {
		if _, err := parseGreeting(c.packet); !errors.Is(err, c.why) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var said *DonorError
	if _, err := parseGreeting(append([]byte{replyError, 0x10, 0x04}, "Too many connections"...)); !errors.As(err,
		&said) ||
		said.Number != 1040 || said.Message != "Too many connections" {
		t.Errorf("%v", err)
	}
}

// The expected value is computed by MySQL's definition with another program (Python's hashlib).
func TestAPasswordIsScrambled(t *testing.T) {
	if got := scramble("", []byte("x")); len(got) != 0 {
		t.Errorf("no password became %x", got)
	}
	const want = "51ecd6dedbd34d5445c0a190d4f51acf0d23b94db66c91f3f789faa9193751cd"
	if got := hex.EncodeToString(scramble("secret", []byte("12345678901234567890"))); got != want {
		t.Errorf("%s", got)
	}
}

// answering plays a server's side of the authentication.
func answering(t *testing.T, answers ...[]byte) (got [][]byte, err error) {
	ours, theirs := pipe(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, a := range answers {
			if theirs.write(a) != nil {
				return
			}
			if a[0] == replySwitch || a[0] == replyAuthMore && a[1] == authFull {
				p, err := theirs.read()
				if err != nil {
					return
				}
				got = append(got, bytes.Clone(p))
			}
		}
	}()
	err = ours.authenticate("secret")
	_ = ours.Close()
	<-done
	return got, err
}

func TestTheLoginGoesAllWaysThatAServerMayAsk(t *testing.T) {
	nonce := "abcdefghijklmnopqrst"
	ok, fast, full := []byte{replyOK, 0, 0}, []byte{replyAuthMore, authFast}, []byte{replyAuthMore, authFull}
	change := append([]byte{replySwitch}, authPlugin+"\x00"+nonce+"\x00"...)
	if got, err := answering(t, fast, ok); err != nil || len(got) != 0 {
		t.Errorf("from the cache: %v, %q", err, got)
	}
	if got, err := answering(t, full, ok); err != nil || len(got) != 1 || string(got[0]) != "secret\x00" {
		t.Errorf("in full: %v, %q", err, got)
	}
	if got, err := answering(t, change, fast, ok); err != nil ||
		!bytes.Equal(got[0], scramble("secret", []byte(nonce))) {
		t.Errorf("with another nonce: %v, %q", err, got)
	}
	if _, err := answering(t, append([]byte{replySwitch}, "mysql_native_password\x00"+nonce+"\x00"...)); !errors.Is(err,
		LoginDenied) {
		t.Errorf("by another plugin: %v", err)
	}
	denied := append([]byte{replyError, 0x15, 0x04}, "#28000Access denied"...)
	var said *DonorError
	if _, err := answering(t, denied); !errors.Is(err, LoginDenied) || !errors.As(err, &said) ||
		said.Message != "Access denied" {
		t.Errorf("denied: %v", err)
	}
	if _, err := answering(t, fast, fast, fast, fast, fast); !errors.Is(err, Malformed) {
		t.Errorf("without end: %v", err)
	}
	if _, err := answering(t, []byte{7}); !errors.Is(err, Malformed) {
		t.Errorf("with something else: %v", err)
	}
}

func TestALostConnectionAndASilentOneAreTold(t *testing.T) {
	ours, theirs := pipe(t)
	_ = theirs.Close()
	if _, err := ours.read(); !errors.Is(err, ConnectionLost) {
		t.Errorf("lost: %v", err)
	}
	ours, _ = pipe(t)
	ours.silence = 10 * time.Millisecond
	if _, err := ours.read(); !errors.Is(err, DonorSilent) {
		t.Errorf("silent: %v", err)
	}
}

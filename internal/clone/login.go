package clone

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"net"
)

// The numbers of MySQL's client protocol that a login needs. The protocol is described
// in MySQL's source documentation, "Client/Server Protocol".
const (
	handshakeVersion = 10
	authPlugin       = "caching_sha2_password"
	charsetUTF8MB4   = 45
	nonceSize        = 20

	capabilityLongPassword     = 1 << 0
	capabilityProtocol41       = 1 << 9
	capabilityTLS              = 1 << 11
	capabilityTransactions     = 1 << 13
	capabilitySecureConnection = 1 << 15
	capabilityPluginAuth       = 1 << 19
	capabilities               = capabilityLongPassword | capabilityProtocol41 | capabilityTLS |
		capabilityTransactions | capabilitySecureConnection | capabilityPluginAuth

	replyOK       = 0x00
	replyAuthMore = 0x01
	replySwitch   = 0xfe
	replyError    = 0xff

	authFast = 3 // the server had the password's hash in its cache
	authFull = 4 // it wants the password

	comQuit  = 0x01
	comQuery = 0x03
	comClone = 0x20
)

// connect logs in. The connection is interrupted when ctx ends; release closes it.
func (d Donor) connect(ctx context.Context) (c *conn, release func(), err error) {
	if d.TLS == nil {
		return nil, nil, refuse(NeedsTLS, "connecting to %s", d.Address)
	}
	dialer := net.Dialer{Timeout: d.Silence}
	raw, err := dialer.DialContext(ctx, "tcp", d.Address)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to the donor: %w", err)
	}
	c = newConn(raw, d.Silence)
	stop := context.AfterFunc(ctx, c.interrupt)
	// The raw connection: to close TLS in order could block.
	release = func() { stop(); _ = raw.Close() }
	if err := c.login(d); err != nil {
		release()
		return nil, nil, fmt.Errorf("logging in at %s as %s: %w", d.Address, d.User, ended(ctx, err))
	}
	return c, release, nil
}

func (c *conn) login(d Donor) error {
	greeting, err := c.read()
	if err != nil {
		return err
	}
	nonce, err := parseGreeting(greeting)
	if err != nil {
		return err
	}
	hello := binary.LittleEndian.AppendUint32(nil, capabilities)
	hello = binary.LittleEndian.AppendUint32(hello, maxPacket)
	hello = append(append(hello, charsetUTF8MB4), make([]byte, 23)...)
	if err := c.write(hello); err != nil {
		return err
	}
	if err := c.startTLS(d); err != nil {
		return err
	}
	response := append(hello, d.User...)
	scrambled := scramble(d.Password, nonce)
	response = append(response, 0, byte(len(scrambled)))
	response = append(response, scrambled...)
	response = append(append(response, authPlugin...), 0)
	if err := c.write(response); err != nil {
		return err
	}
	return c.authenticate(d.Password)
}

// parseGreeting returns the nonce of a server's first packet.
func parseGreeting(p []byte) (nonce []byte, err error) {
	if len(p) > 0 && p[0] == replyError {
		return nil, parseError(p)
	}
	if len(p) == 0 || p[0] != handshakeVersion {
		return nil, refuse(UnknownVersion, "the donor's greeting")
	}
	_, rest, ok := bytes.Cut(p[1:], []byte{0}) // the server's version
	// thread 4, nonce 8, filler 1, capabilities 2, charset 1, status 2, capabilities 2, length of
	// the nonce 1, reserved 10, nonce
	const second = 4 + 8 + 1 + 2 + 1 + 2 + 2 + 1 + 10
	if !ok || len(rest) < second+nonceSize-8 {
		return nil, refuse(Malformed, "the donor's greeting has %d bytes", len(p))
	}
	has := uint32(binary.LittleEndian.Uint16(rest[13:])) | uint32(binary.LittleEndian.Uint16(rest[18:]))<<16
	if has&capabilityTLS == 0 {
		return nil, refuse(NeedsTLS, "the donor offers no TLS")
	}
	if has&capabilities != capabilities {
		return nil, refuse(UnknownVersion, "the donor has capabilities %#x, and %#x are needed", has, capabilities)
	}
	return append(bytes.Clone(rest[4:12]), rest[second:second+nonceSize-8]...), nil
}

// startTLS makes of the connection one over TLS. The packets' numbers go on.
func (c *conn) startTLS(d Donor) error {
	config := d.TLS.Clone()
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(d.Address)
		if err != nil {
			return fmt.Errorf("the donor's address: %w", err)
		}
		config.ServerName = host
	}
	secure := tls.Client(c.Conn, config)
	if err := c.due(c.SetDeadline); err != nil {
		return lost(err, "securing the connection")
	}
	if err := secure.Handshake(); err != nil {
		return fmt.Errorf("securing the connection: %w", err)
	}
	c.Conn = secure
	return nil
}

// scramble is what caching_sha2_password sends instead of the password:
// SHA256(p) XOR SHA256(SHA256(SHA256(p)), nonce).
func scramble(password string, nonce []byte) []byte {
	if password == "" {
		return nil
	}
	once := sha256.Sum256([]byte(password))
	twice := sha256.Sum256(once[:])
	mask := sha256.Sum256(append(twice[:], nonce...))
	for i := range once {
		once[i] ^= mask[i]
	}
	return once[:]
}

// authenticate goes on until the server lets us in. The longest way has four answers:
// another nonce, not in the cache, and OK.
func (c *conn) authenticate(password string) error {
	for range 4 {
		p, err := c.read()
		if err != nil {
			return err
		}
		switch {
		case len(p) > 0 && p[0] == replyOK:
			return nil
		case len(p) > 0 && p[0] == replyError:
			return parseError(p)
		case len(p) == 2 && p[0] == replyAuthMore && p[1] == authFast:
			continue
		case len(p) == 2 && p[0] == replyAuthMore && p[1] == authFull:
			err = c.write(append([]byte(password), 0)) // TLS hides it
		case len(p) > 0 && p[0] == replySwitch:
			err = c.switchTo(p[1:], password)
		default:
			err = refuse(Malformed, "an answer to the login of %d bytes", len(p))
		}
		if err != nil {
			return err
		}
	}
	return refuse(Malformed, "the login has no end")
}

// switchTo begins the authentication again with what the server asks for.
func (c *conn) switchTo(p []byte, password string) error {
	plugin, nonce, _ := bytes.Cut(p, []byte{0})
	if string(plugin) != authPlugin {
		return refuse(LoginDenied, "the account uses %q", plugin)
	}
	if len(nonce) < nonceSize {
		return refuse(Malformed, "a nonce of %d bytes", len(nonce))
	}
	return c.write(scramble(password, nonce[:nonceSize]))
}

// parseError reads an ERR packet: 0xff, number, and '#' with an SQL state unless it
// comes before the login.
func parseError(p []byte) error {
	if len(p) < 3 {
		return refuse(Malformed, "an error packet of %d bytes", len(p))
	}
	message := p[3:]
	if len(message) >= 6 && message[0] == '#' {
		message = message[6:]
	}
	return &DonorError{Number: uint32(binary.LittleEndian.Uint16(p[1:])), Message: string(message)}
}

// ask sends an ordinary command that is answered by OK or an error.
func (c *conn) ask(command byte, argument string) error {
	if err := c.command(append([]byte{command}, argument...)); err != nil {
		return err
	}
	p, err := c.read()
	switch {
	case err != nil:
		return err
	case len(p) > 0 && p[0] == replyOK:
		return nil
	case len(p) > 0 && p[0] == replyError:
		return parseError(p)
	}
	return refuse(Malformed, "an answer of %d bytes to command %d", len(p), command)
}

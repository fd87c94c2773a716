package clone

import "encoding/binary"

// Integers in messages are little-endian, other than in descriptors.
const (
	commandInit    = 1
	commandExecute = 4
	commandAck     = 5
	commandExit    = 6

	responseLocator    = 1
	responseDescriptor = 2
	responseData       = 3
	responsePlugin     = 4
	responseConfig     = 5
	responseCollation  = 6
	responsePluginV2   = 7
	responseConfigV3   = 8
	responseConfigV4   = 9
	responseComplete   = 99
	responseError      = 100

	engineInnoDB = 12

	// ddlGoesOn is the bit that lets DDL run on the donor meanwhile; the other bits are
	// how many seconds a lock against DDL would be waited for.
	ddlGoesOn = 1<<31 | 300

	// errInterrupted is ER_QUERY_INTERRUPTED, by which an acknowledgement becomes the
	// opposite of one.
	errInterrupted = 1317

	// maxOrigin is the most that a donor may tell about itself, in bytes. It is some 10 KiB.
	maxOrigin = 1 << 20
)

// learn adds what one response to INIT tells.
func (o *Origin) learn(code byte, body []byte) error {
	in := texts{b: body}
	switch code {
	case responsePlugin:
		o.Plugins = append(o.Plugins, Plugin{Name: in.next()})
	case responsePluginV2:
		o.Plugins = append(o.Plugins, Plugin{Name: in.next(), Library: in.next()})
	case responseCollation:
		o.Collations = append(o.Collations, in.next())
	case responseConfig, responseConfigV3, responseConfigV4:
		key := in.next()
		o.Config[key] = in.next()
	default:
		return refuse(UnknownVersion, "response %d of the donor", code)
	}
	if in.bad || len(in.b) > 0 {
		return refuse(Malformed, "a response %d of %d bytes", code, len(body))
	}
	return nil
}

// texts reads one text behind the other: a length of 4 bytes, and the bytes.
type texts struct {
	b   []byte
	bad bool
}

func (t *texts) next() string {
	if t.bad || len(t.b) < 4 || uint64(binary.LittleEndian.Uint32(t.b)) > uint64(len(t.b)-4) {
		t.bad = true
		return ""
	}
	n := 4 + binary.LittleEndian.Uint32(t.b)
	text := string(t.b[4:n])
	t.b = t.b[n:]
	return text
}

// appendLocator adds a locator as messages hold it.
func appendLocator(b []byte, l Locator) []byte {
	b = binary.LittleEndian.AppendUint32(append(b, engineInnoDB), locatorSize)
	return l.Append(b)
}

// initMessage asks for a new snapshot.
func initMessage() []byte {
	b := binary.LittleEndian.AppendUint32([]byte{commandInit}, protocolLast)
	b = binary.LittleEndian.AppendUint32(b, ddlGoesOn)
	return appendLocator(b, Locator{})
}

// ackMessage says that all of a state has come; a number other than 0, an error, asks the donor to give up.
func ackMessage(l Locator, end StateChange, number uint32) []byte {
	b := appendLocator(binary.LittleEndian.AppendUint32([]byte{commandAck}, number), l)
	end.Flags |= stateAck
	return end.Append(binary.LittleEndian.AppendUint32(b, stateSize))
}

// parseLocators reads the version and the locator of the answer to INIT.
func parseLocators(b []byte) (version uint32, l Locator, err error) {
	if len(b) != 4+1+4+locatorSize || b[4] != engineInnoDB || binary.LittleEndian.Uint32(b[5:]) != locatorSize {
		return 0, l, refuse(Malformed, "locators of %d bytes", len(b))
	}
	d, err := ParseDescriptor(b[9:])
	if err != nil {
		return 0, l, err
	}
	l, ok := d.(Locator)
	if !ok {
		return 0, l, refuse(Malformed, "no locator where one is due")
	}
	return binary.LittleEndian.Uint32(b), l, nil
}

// parseDescriptorMessage reads engine, index of the locator, and a descriptor.
func parseDescriptorMessage(b []byte) (Descriptor, error) {
	if len(b) < 2 || b[0] != engineInnoDB || b[1] != 0 {
		return nil, refuse(Malformed, "a descriptor's message of %d bytes, not of InnoDB", len(b))
	}
	return ParseDescriptor(b[2:])
}

// parseFailure reads the body of a response that says what went wrong.
func parseFailure(b []byte) error {
	if len(b) < 4 {
		return refuse(Malformed, "a failure of %d bytes", len(b))
	}
	return &DonorError{Number: binary.LittleEndian.Uint32(b), Message: string(b[4:])}
}

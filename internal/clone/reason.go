package clone

import (
	"fmt"
)

// Reason is why a snapshot is not taken or not applied: a name, which can become a
// condition, an event or a metric, and a sentence that says what to do.
type Reason struct{ Name, Advice string }

func (r *Reason) Error() string { return r.Name + ": " + r.Advice }

// Refusals by the donor, see reasonOf.
var (
	CloneRunning = &Reason{"CloneRunning",
		"the donor already serves a clone, and serves one at a time: wait for its end, or choose another donor"}
	NoPrivilege = &Reason{"NoPrivilege",
		"the account may not clone: GRANT BACKUP_ADMIN ON *.* to it on the donor"}
	NoPlugin = &Reason{"NoPlugin",
		"the donor has not loaded the clone plugin: INSTALL PLUGIN clone SONAME 'mysql_clone.so' there"}
	RedoLogDisabled = &Reason{"RedoLogDisabled",
		"the donor writes no redo log: ALTER INSTANCE ENABLE INNODB REDO_LOG there"}
	DDLRunning = &Reason{"DDLRunning",
		"the donor could not lock out DDL in time: try again when no ALTER runs"}
	NeedsTLS = &Reason{"NeedsTLS",
		"the donor wants TLS, for passwords and data: give a TLS configuration"}
	LoginDenied = &Reason{"LoginDenied",
		"the donor does not let the account in: check its name, its password and that it uses caching_sha2_password"}
)

// Refusals by this package.
var (
	Encrypted = &Reason{"Encrypted",
		"the donor has encrypted tablespaces, and a clone would hold their keys in the clear: " +
			"decrypt them (ENCRYPTION = 'N')"}
	LogsEncrypted = &Reason{"LogsEncrypted",
		"a clone would hold the keys of the donor's logs in the clear: set innodb_redo_log_encrypt and " +
			"innodb_undo_log_encrypt to OFF there; logs of before stay encrypted until the server has written them " +
			"again"}
	UnsafeName = &Reason{"UnsafeName",
		"a file lies outside of the data directory: " +
			"move its table or tablespace into it (no DATA DIRECTORY, no absolute path)"}
	PageSize = &Reason{"PageSize",
		"only tablespaces of a server with innodb_page_size=16384 were verified: use such a server"}
	UnknownVersion = &Reason{"UnknownVersion",
		"this version was not verified: use a release of this program that knows it"}
	Malformed = &Reason{"Malformed",
		"what was received does not follow the protocol: start again; " +
			"if it stays, the stream is damaged or the server is unlike those verified"}
	TwoServers = &Reason{"TwoServers",
		"a clone takes two connections, and the address leads them to different servers, as a load balancer does: " +
			"give the address of one server"}
	DonorSilent = &Reason{"DonorSilent",
		"the donor said nothing for too long: " +
			"look whether it hangs or waits for prepared transactions, and whether the network drops packets"}
	DonorStops = &Reason{"DonorStops",
		"the donor ended the clone: mysqld is being stopped, or its session was killed; start again when it serves"}
	ConnectionLost = &Reason{"ConnectionLost",
		"the connection to the donor broke: start again; the donor may refuse until it has noticed the loss"}
	NotEmpty = &Reason{"NotEmpty",
		"the directory holds something already: give an empty one"}
	Incomplete = &Reason{"Incomplete",
		"the stream ends before the snapshot does: look for a missing or truncated part"}
)

// refuse says what was wrong, and by which name.
func refuse(why *Reason, format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, why)...)
}

// DonorError is what a donor answered instead of what it was asked for.
type DonorError struct {
	// Number is the server's, for example 3634, see reasonOf.
	Number  uint32
	Message string
}

// Error returns what the donor says, and what it means where that is known.
func (e *DonorError) Error() string {
	text := fmt.Sprintf("the donor says: error %d: %s", e.Number, e.Message)
	if why := reasonOf(e.Number); why != nil {
		text += " (" + why.Error() + ")"
	}
	return text
}

// Unwrap gives the Reason of a refusal that is known.
func (e *DonorError) Unwrap() error {
	if why := reasonOf(e.Number); why != nil {
		return why
	}
	return nil
}

// reasonOf knows the server's error numbers; nil for what is no refusal.
func reasonOf(number uint32) *Reason {
	switch number {
	case errInterrupted, 1053: // the latter is ER_SERVER_SHUTDOWN
		return DonorStops
	case 3634: // ER_CLONE_TOO_MANY_CONCURRENT_CLONES
		return CloneRunning
	case 1227: // ER_SPECIFIC_ACCESS_DENIED_ERROR
		return NoPrivilege
	case 1524: // ER_PLUGIN_IS_NOT_LOADED
		return NoPlugin
	case 3983: // ER_INNODB_REDO_DISABLED
		return RedoLogDisabled
	case 1205: // ER_LOCK_WAIT_TIMEOUT
		return DDLRunning
	case 3872, 3159: // ER_CLONE_ENCRYPTION, ER_SECURE_TRANSPORT_REQUIRED
		return NeedsTLS
	case 1044, 1045, 1130, 1251, 1698, 1820, 1862, 2059, 2061, 3118, 3955:
		return LoginDenied // as in internal/mysql: the account is not let in
	}
	return nil
}

package store

import (
	"fmt"
)

// What a store answers.
var (
	NotFound = &Reason{"StoreNotFound",
		"there is no object of this name: it was never written, or somebody deleted it; look into the bucket"}
	Exists = &Reason{"StoreExists",
		"there is already an object of this name, and it is not overwritten: look who wrote it"}
	NoBucket = &Reason{"StoreNoBucket",
		"the bucket does not exist: create it, or correct its name"}
	AccessDenied = &Reason{"StoreAccessDenied",
		"the store knows us, but does not allow this: " +
			"give the account the right to read, write, list and delete in the bucket"}
	CredentialsWrong = &Reason{"StoreCredentialsWrong",
		"the store does not accept the credentials: " +
			"check the keys in the Secret (or the identity of the Pod), and whether they have expired"}
	ClockSkewed = &Reason{"StoreClockSkewed",
		"the clock of this machine and the clock of the store differ too much: correct the time of the node (NTP)"}
	WrongRegion = &Reason{"StoreWrongRegion",
		"the bucket is in another region: correct the region or the endpoint"}
	Full = &Reason{"StoreFull",
		"the store has no more space, or a quota is used up: delete what is not needed, or give it more space"}
	Unavailable = &Reason{"StoreUnavailable",
		"the store answers that it cannot work now, or asks us to slow down: wait; " +
			"if it stays, look at the health of the store"}
	Unsupported = &Reason{"StoreUnsupported",
		"the store cannot do what is needed (for example: write only if the object is not there): " +
			"use another store, or a newer version"}
	Refused = &Reason{"StoreRefused",
		"the store does not accept the request: read its message, and check bucket, encryption and storage class"}
)

// What happens on the way to a store.
var (
	Unreachable = &Reason{"StoreUnreachable",
		"no connection to the store: check the endpoint (name, port), DNS, firewalls and network policies"}
	CertificateWrong = &Reason{"StoreCertificateWrong",
		"the certificate of the store is not trusted: " +
			"give its authority as ca.crt, and check that the endpoint's name is in the certificate"}
	Stalled = &Reason{"StoreStalled",
		"the store took the connection but sent nothing for too long: " +
			"look whether it hangs, and whether the network loses packets"}
	ConnectionLost = &Reason{"StoreConnectionLost",
		"the connection to the store broke, or damaged what it carried: try again; " +
			"if it stays, look at the network and at proxies"}
	Misconfigured = &Reason{"StoreMisconfigured",
		"the configuration of the store is wrong: correct what the message names"}
	BadKey = &Reason{"StoreBadKey",
		"an object cannot have this name: this is a mistake in the program; please report it"}
)

// refuse says what was wrong, and by which name.
func refuse(why *Reason, format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, why)...)
}

// because gives an error a name, unless it has none. Both are found by errors.Is.
func because(why *Reason, err error) error {
	if err == nil || why == nil {
		return err
	}
	return fmt.Errorf("%w (%w)", err, why)
}

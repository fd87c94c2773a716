package policy

// Times as Go writes them. The format date-time of the CRD's schema takes more than Go's types
// read, and an object that is not read is hidden from the operator, and from the instances. That a
// day is in its month, the schema sees to.
const (
	untilSeconds = "^([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-[0-9]{2}-[0-9]{2}" +
		"T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
	// readableTime is that of a metav1.Time, readableMicroTime that of a metav1.MicroTime.
	readableTime      = untilSeconds + "Z$"
	readableMicroTime = untilSeconds + "[.][0-9]{6}Z$"
)

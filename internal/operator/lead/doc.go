// Package lead chooses which of several operators works. It knows the lease, and who reaches the leader; it
// must not know what the leader does. Two that lead at once do no harm: every decision of the operator is a
// conditional write.
package lead

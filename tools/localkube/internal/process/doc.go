// Package process starts programs that outlive localkube, in a network namespace
// and a control group, and knows later whether they still run. A process is
// remembered by its id together with its start time and the machine's boot, so
// that an id which the kernel gave to somebody else is never taken for ours.
package process

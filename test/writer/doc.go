// Package writer writes rows through a MySQL endpoint, remembers the fate of each, and tells
// afterwards for how long nothing could be written and whether anything that the server had
// acknowledged is gone. Tests, the demo and the benchmarks judge failovers by it.
//
// It knows a MySQL address and nothing else: no Kubernetes, no cluster, no role. What an outage
// was caused by is for its user to know; it only measures what a client of the database would
// have seen.
//
// # Outcomes
//
// Every attempt to insert a row has exactly one outcome:
//
//   - Acknowledged: the server answered OK. The row must be there for ever.
//   - Unknown: the statement may have reached the server, and no answer that settles it came back.
//     The row may be there or not.
//   - Refused: the server answered with an error, as a read-only server does, or the statement never left.
//     The row must not be there.
//
// A sequence number is used for one attempt only, whatever its outcome, so that a row in the
// table can be traced to one attempt. Connections that could not be made are counted apart
// (Unconnected), and use no sequence number.
//
// # Gaps
//
// A gap is the time between two consecutive acknowledgements, of whatever connections, each taken
// when its OK had been read. All times come from the monotonic clock of the one process; the
// server's clock plays no part. The time before the first acknowledgement is no gap. The time
// since the last one is: it is marked Open, ends now (or when the writer was stopped), and counts
// among the others, so that a test which asks for the longest gap during an outage that has not
// ended does not get a short one.
//
// With n connections at an interval i, a healthy endpoint shows gaps near i/n. An outage is
// measured too long by up to RetryPace and the time to connect and insert, if the endpoint
// refuses or resets connections while it lasts. If packets vanish instead, the connections may be
// waiting when it ends: for DialTimeout on a silent address, for IOTimeout on an answer that does
// not come, and for both together on a server that accepts connections and says nothing.
package writer

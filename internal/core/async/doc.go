// Package async decides for a primary with replicas that follow it by GTID:
// provisioning, divergence, diagnosis, election, failover, switchover,
// acknowledgements and routing. Decide is a pure function of an observation.
//
// The holder of a promotion is the one instance that may be writable. All
// safety hangs on one rule: a new promotion is granted only with a proof that
// the holder of the last one cannot acknowledge another write.
package async

// Package observed tells an Observation as text, line by line in the words of core,
// and reads it back without loss. What the simulation's operator saw when it decided
// becomes a story that the tests of core/async run ("observed" in their scripts).
//
//	cluster name=c wanted=3 durability.mode=quorum
//	status epoch=2 currentPrimary=c-1 instanceNames=c-1,c-2
//	promotion epoch=2 instance=c-1 proof=ManagerFenced grantedAt=-4s
//	instance c-1 ordinal=1
//	pod exists=true uid=pod-1 node=node-1 @-20ms
//	report state=Running server.executed=a:1-9 @-1.2s..-1.1s
//
// A field that is not named is zero, a fact that is not told is unknown. Times are
// relative to the moment of the observation; behind @ stands when a fact was true at
// its origin, at the earliest and at the latest. Letters stand for server UUIDs.
//
// It knows the types of core by reflection, and nothing of what they mean. Pure. (It is
// not a part of core, which does without reflection.)
package observed

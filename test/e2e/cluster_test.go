//go:build e2e

package e2e

import (
	"testing"
	"time"
)

// threeSpec is the Cluster that the tests of this file play on, one after the other. Each node has one instance,
// and a container has a limit of memory that it can run into.
const threeSpec = quorumSpec + `
  resources: {limits: {memory: 1200Mi}}
` + additionalServices

// ofThree is that Cluster: whoever needs it first makes it, and TestUser, the last, takes it away.
var ofThree = &handedOn{name: "three", makes: applies(threeSpec)}

// TestCluster: a primary with two replicas under quorum lives through what befalls every cluster:
// it is made, read and written through its Services, switched over, and loses processes, Pods, a
// volume and its operator; it is scaled, and deleted. No acknowledged write is lost.
func TestCluster(t *testing.T) {
	ofThree.story(t).play([]step{
		{"ThreeInstancesBecomeReady", (*world).provision, always, nothing},
		{"WritesReachReplicas", (*world).writesReachReplicas, always, three},
		{"ServicesRouteByRole", (*world).servicesRouteByRole, always, three},
		{"PortsAreReserved", (*world).portsAreReserved, always, three},
		{"SteadyStateWritesNothing", (*world).steadyStateWritesNothing, always, three},
		{"AdditionalServicesRouteByRole", (*world).additionalServicesRouteByRole, inAll, three},
		{"ForeignAnnotationSurvives", (*world).foreignAnnotationSurvives, inAll, three},
		{"SwitchoverUnderWrites", (*world).switchoverUnderWrites, always, three},
		{"SwitchoverToNobodyIsRefused", (*world).switchoverToNobodyIsRefused, inAll, three},
		{"MysqldOfPrimaryKilled", (*world).mysqldOfPrimaryKilled, always, three},
		{"MysqldOfReplicaKilled", (*world).mysqldOfReplicaKilled, inAll, three},
		{"PrimaryPodForceDeleted", (*world).primaryPodForceDeleted, always, three},
		{"PrimaryPodDeleted", (*world).primaryPodDeleted, inAll, three},
		{"ReplicaPodDeleted", (*world).replicaPodDeleted, inAll, three},
		{"ReplicaVolumeDeleted", (*world).replicaVolumeDeleted, always, three},
		{"OperatorKilledDuringFailover", (*world).operatorKilledDuringFailover, always, three},
		{"StatusSetBack", (*world).statusSetBack, inAll, three},
		{"OperatorKilledDuringSwitchover", (*world).operatorKilledDuringSwitchover, inAll, three},
		{"OperatorKilledDuringReclone", (*world).operatorKilledDuringReclone, inAll, three},
		{"ManagersReplacedInPlace", (*world).managersReplacedInPlace, always, three},
		{"ScaledDownAndUp", (*world).scaledDownAndUp, always, three},
		{"DeletedClusterLeavesItsVolumesForAnother", (*world).deletedClusterLeavesItsVolumes, inAll, threeForItself},
	})
}

// TestFaults does to processes whatever may happen to them. Under quorum nothing
// that was acknowledged may be missing afterwards, and the instances must agree.
func TestFaults(t *testing.T) {
	ofThree.story(t).play([]step{
		{"MysqldOfPrimaryHangs", (*world).mysqldOfPrimaryHangs, always, three},
		{"ManagerOfPrimaryKilled", (*world).managerOfPrimaryKilled, always, three},
		{"ManagerOfPrimaryStopped", (*world).managerOfPrimaryStopped, inAll, three},
		{"PrimaryOutOfMemory", (*world).primaryOutOfMemory, inAll, three},
		{"PrimaryAndReplicaKilled", (*world).primaryAndReplicaKilled, inAll, three},
		{"TwoFailuresInARow", (*world).twoFailuresInARow, inAll, three},
		{"ReplicasLagFarBehind", (*world).replicasLagFarBehind, inAll, three},
		{"KilledAgainAndAgainUnderLoad", (*world).killedAgainAndAgain, inAll, three},
		{"AllKilled", (*world).allKilled, always, three},
		{"AllPodsDeleted", (*world).allPodsDeleted, inAll, three},
	})
}

// TestNetwork loses nodes and the network between them under quorum durability:
// not one acknowledged row may be missing afterwards.
func TestNetwork(t *testing.T) {
	ofThree.story(t).play([]step{
		{"PartitionedFromTheAPIServer", (*world).primaryCutFromAPI, inAll, three},
		{"APIServerOutOfReachOfAll", (*world).everybodyCutFromAPI, always, three},
		{"PrimaryNodePartitioned", (*world).primaryNodePartitioned, always, three},
		{"PrimaryNodePoweredOff", (*world).primaryNodePoweredOff, always, three},
		{"PrimaryAndOperatorPoweredOff", (*world).primaryAndOperatorPoweredOff, inAll, three},
		{"PrimaryPartitionedFromOtherNodes", (*world).primaryCutFromNodes, inAll, three},
		{"PrimaryHearsNobody", func(w *world) { w.primaryCutOneWay("in") }, inAll, three},
		{"NobodyHearsPrimary", func(w *world) { w.primaryCutOneWay("out") }, inAll, three},
		{"PrimaryNodeDrained", (*world).primaryNodeDrained, always, three},
		{"ReplicaNodePartitioned", (*world).replicaNodePartitioned, inAll, three},
		{"LeaseDeleted", (*world).leaseDeleted, inAll, three},
	})
}

// TestUser does what a person on call does, with the plugin, and reads what it says.
func TestUser(t *testing.T) {
	ofThree.lastStory(t).play([]step{
		{"FencedReplica", (*world).fencedReplica, inAll, three},
		{"FencedPrimary", (*world).fencedPrimary, always, three},
		{"ReinitOfPrimaryIsRefused", (*world).reinitOfPrimaryIsRefused, inAll, three},
		{"DivergedReplica", (*world).divergedReplica, always, three},
		{"BrokenReplication", (*world).brokenReplication, inAll, three},
		{"WhatIf", (*world).whatIf, inAll, three},
		{"BlockedFailover", (*world).blockedFailover, always, three},
	})
}

// provisionLimit is what the issue of the foundation asks for, apply to Ready.
const provisionLimit = 45 * time.Second

func (w *world) provision() {
	begun := time.Now()
	w.apply(threeSpec)
	w.healthy(3 * time.Minute)
	took := time.Since(begun)
	w.t.Logf("apply to three Ready: %s", took)
	if took > provisionLimit {
		w.t.Errorf("apply to three Ready took %s; at most %s is wanted", took, provisionLimit)
	}
}

package agent

import (
	"strings"

	"cnmsql.co/internal/core"
)

func (s *story) cluster(key, value string) bool {
	c := s.f.Cluster
	switch key {
	case "unknown":
		s.f.Cluster = nil
	case "epoch":
		c.Epoch = number(value)
	case "current":
		c.CurrentPrimary = value
	case "switchover-from":
		c.SwitchoverFrom = value
	case "gives-data":
		c.GivesData = value
	case "delayed-from":
		c.DelayedFrom = value
	case "failover-from":
		c.FailoverFrom, c.PrimarySince = value, s.f.Now
	case "since": // what the view tells has just become known
		c.PrimarySince = s.f.Now
	case "restores": // its first data come from a backup
		c.FirstData = core.OriginRestored
	case "established":
		c.Established = value != "no"
	case "deleting":
		c.Deleting = true
	case "diverged":
		c.Diverged = strings.Split(value, ",")
	case "instances":
		c.Instances = int(number(value))
	case "members":
		c.Members = strings.Split(value, ",")
	case "names":
		c.Names = strings.Split(value, ",")
	case "generation":
		c.Generation = number(value)
	case "fenced":
		c.Fenced = strings.Split(value, ",")
	case "durability":
		c.Durability = core.DurabilityMode(value)
	case "lease":
		c.Lease = value != "no"
	default:
		return setPromotion(c, key, value)
	}
	return true
}

// setPromotion changes what the view of the Cluster has of the promotion.
func setPromotion(c *Cluster, key, value string) bool {
	switch key {
	case "promotion":
		who, at, _ := strings.Cut(value, "@")
		c.Promotion = &core.Promotion{Instance: who, Epoch: number(at), Proof: core.ProofManagerFenced}
		c.Epoch = c.Promotion.Epoch
	case "proof":
		c.Promotion.Proof = core.Proof(value)
	case "pod":
		c.Promotion.PodUID = value
	case "node":
		c.Promotion.Node = value
	case "required":
		c.Promotion.RequiredGTID = set(value)
	case "acks":
		c.Promotion.RequiredAcks = int(number(value))
	case "follows":
		c.Promotion.Follows = value
	case "lossless":
		c.Promotion.LosslessSince = number(value)
	case "leased":
		c.Promotion.Leased = value != "no"
	default:
		return false
	}
	return true
}

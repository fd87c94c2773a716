package core

// Room is how much is free of the volume that holds an instance's data.
type Room struct {
	// Free and Size are in bytes.
	Free uint64 `json:"free"`
	Size uint64 `json:"size"`
	// Low tells whether so little is free that somebody has to act before writes hang. It begins
	// below a bound, and ends well above it.
	Low bool `json:"low,omitempty"`
	// Full tells whether so little is free that a commit may find no space. It ends when twice as much is free.
	Full bool `json:"full,omitempty"`
}

// lasting is what of it is worth a word at once.
func (r *Room) lasting() *Room {
	if r == nil {
		return nil
	}
	return &Room{Size: r.Size, Low: r.Low, Full: r.Full}
}

// LacksSpace reports whether the instance runs, and says that it waits for space: a primary with its
// commits, a replica with what it receives.
func (r *Report) LacksSpace() bool { return r.State == Running && r.Reason == InstanceDiskFull }

// TargetFullText is why an instance that IsFull is not asked to become primary.
const TargetFullText = "its volume is full, and its first commit would hang: raise spec.storage.size"

// IsFull reports whether the instance has no space for another commit, as far as it knows: little is
// free, or its receiver waits for space.
func (r *Report) IsFull() bool {
	return r.Room != nil && r.Room.Full ||
		r.Server != nil && r.Server.Replication != nil && r.Server.Replication.NoSpace
}

package agent

import "cnmsql.co/internal/core"

// SpaceNeeded is how many bytes have to be free on a volume for mysqld to be started. With less, a
// commit may find no space.
const SpaceNeeded = 16 << 20

// Shares of a volume: it is nearly full when less than lowBelow is free, until more than lowUntil is.
const lowBelow, lowUntil = 0.10, 0.12

// RoomOf judges how much of a volume is free, both in bytes. What hovers around the bound would be
// told over and over; so it matters how it was judged before, nil for not at all.
func RoomOf(before *core.Room, free, size uint64) *core.Room {
	share := lowBelow
	if before != nil && before.Low {
		share = lowUntil
	}
	return &core.Room{Free: free, Size: size, Low: float64(free) < share*float64(size), Full: free < SpaceNeeded}
}

package agent

import "cnmsql.co/internal/core"

// SpaceNeeded is how many bytes have to be free on a volume for mysqld to be started. With less, a
// commit may find no space.
const SpaceNeeded = 16 << 20

// Shares of a volume: it is nearly full when less than lowBelow is free, until more than lowUntil is.
const lowBelow, lowUntil = 0.10, 0.12

// fullUntil is how many bytes have to be free on a volume that was full for it not to be full any more.
const fullUntil = 2 * SpaceNeeded

// RoomOf judges how much of a volume is free, both in bytes. What hovers around a bound would be
// told over and over; so it matters how it was judged before, nil for not at all.
func RoomOf(before *core.Room, free, size uint64) *core.Room {
	share, least := lowBelow, uint64(SpaceNeeded)
	if before != nil && before.Low {
		share = lowUntil
	}
	if before != nil && before.Full {
		least = fullUntil
	}
	return &core.Room{Free: free, Size: size, Low: float64(free) < share*float64(size), Full: free < least}
}

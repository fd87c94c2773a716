package store

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// unsent is how much of what is written waits in the kernel: of megabytes there, a slow line takes no
// more for longer than a store may be silent.
const unsent = 256 << 10

// keepsLittle has the kernel take no more than is soon on its way. Where it does not know that, a slow
// line may be taken for a silent store.
func keepsLittle(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsent)
	})
}

package clone

import (
	"encoding/binary"
	"hash/crc32"
)

// Where things are in a tablespace's first page, see InnoDB's fil0types.h and
// fsp0types.h. Integers are big-endian.
const (
	pageServerVersion = 8
	pageSpaceVersion  = 12
	pageSpaceID       = 34
	pageBody          = 38 // end of the header that all pages have
	pageFSPSpaceID    = 38
	pageFSPFlags      = 54
	pageTrailer       = 8

	// The header's parts that a checksum leaves out: itself, and what is written at
	// each flush, at 26.
	pageHeaderFrom = 4
	pageFlushed    = 26
	pageLSN        = 16
	pageType       = 24

	spaceVersion = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// firstPage is the first page of a new tablespace: all that recovery needs to know whose
// it is. The redo log makes the rest.
func firstPage(server, space, fsp uint32) []byte {
	size, compressed := pageSize, false
	if shift := fsp >> 1 & 0xf; shift != 0 {
		size, compressed = 512<<shift, true
	}
	p := make([]byte, size)
	binary.BigEndian.PutUint32(p[pageServerVersion:], server)
	binary.BigEndian.PutUint32(p[pageSpaceVersion:], spaceVersion)
	binary.BigEndian.PutUint32(p[pageSpaceID:], space)
	binary.BigEndian.PutUint32(p[pageFSPSpaceID:], space)
	binary.BigEndian.PutUint32(p[pageFSPFlags:], fsp)
	crc := func(from, to int) uint32 { return crc32.Checksum(p[from:to], castagnoli) }
	if compressed {
		binary.BigEndian.PutUint32(p, crc(pageHeaderFrom, pageLSN)^crc(pageType, pageFlushed)^crc(pageSpaceID, size))
		return p
	}
	sum := crc(pageHeaderFrom, pageFlushed) ^ crc(pageBody, size-pageTrailer)
	binary.BigEndian.PutUint32(p, sum)
	binary.BigEndian.PutUint32(p[size-pageTrailer:], sum)
	return p
}

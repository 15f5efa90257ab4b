package trace

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// ContentHash returns the SHA-256 of a trace's pairs and events in hexadecimal. Unlike
// Header.Hash, which is of the file, it is independent of the format, and a part of a file has a
// hash of its own. It walks the trace once and fails only if reading does.
func ContentHash(s Source) (string, error) {
	sum := sha256.New()
	for _, p := range s.Head().Header.Meta {
		sum.Write([]byte(p.Key + "\x00" + p.Value + "\x00"))
	}
	sum.Write([]byte("\x00"))
	tags := map[uint32]uint64{0: 0} // numbers in the order of first use, which every format keeps
	var buf []byte
	err := s.Batches(func(batch []Event) error {
		for i := range batch {
			e := &batch[i]
			number, known := tags[e.Tag]
			if !known {
				number = uint64(len(tags))
				tags[e.Tag] = number
			}
			slot := byte(0)
			if e.Slot == NoSlot {
				slot = 1
			}
			buf = append(buf[:0], byte(e.Kind), byte(e.Hint), byte(e.Life), slot)
			for _, n := range [...]uint64{number, uint64(e.Thread), e.ID, uint64(e.Size), uint64(e.Align),
				uint64(e.Stream), e.Arg, uint64(e.Time), e.Site} {
				buf = binary.LittleEndian.AppendUint64(buf, n)
			}
			if !known {
				text := s.TagOf(e)
				buf = binary.LittleEndian.AppendUint64(buf, uint64(len(text)))
				buf = append(buf, text...)
			}
			sum.Write(buf)
		}
		return nil
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}

package replay

import (
	"encoding/binary"
	"errors"
)

var errHistogram = errors.New("no histogram of latencies")

// GobEncode implements gob.GobEncoder: the longest duration, then the buckets that are not empty.
func (h *Histogram) GobEncode() ([]byte, error) {
	b := binary.AppendVarint(nil, h.max)
	for i, n := range h.counts {
		if n > 0 {
			b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(i)), n)
		}
	}
	return b, nil
}

// GobDecode implements gob.GobDecoder.
func (h *Histogram) GobDecode(b []byte) error {
	*h = Histogram{}
	longest, n := binary.Varint(b)
	if n <= 0 {
		return errHistogram
	}
	h.max = longest
	for b = b[n:]; len(b) > 0; {
		i, n := binary.Uvarint(b)
		if n <= 0 || i >= uint64(len(h.counts)) {
			return errHistogram
		}
		count, m := binary.Uvarint(b[n:])
		if m <= 0 {
			return errHistogram
		}
		h.counts[i] += count
		h.n += count
		b = b[n+m:]
	}
	return nil
}

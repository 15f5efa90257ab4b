package front

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// CompareStats compares the counters of s with a walk. It returns an error that names the first
// counter that differs, or the first chunk that leaves a gap, overlaps, or is out of order. It
// costs one walk.
func CompareStats(s alloc.Stats, walk func(func(alloc.Chunk) bool)) error {
	var sum alloc.Stats
	var region, end device.Addr // region being walked, end of the chunk before
	for c := range walk {
		switch {
		case c.Size == 0:
			return fmt.Errorf("chunk %v is empty", c.Addr)
		case sum.Regions > 0 && c.Region == region && c.Addr != end:
			return fmt.Errorf("chunk %v does not start where the one before ends, %v", c.Addr, end)
		case (sum.Regions == 0 || c.Region != region) && (c.Addr != c.Region || c.Addr < end):
			return fmt.Errorf("chunk %v: region %v starts below %v or not with it", c.Addr, c.Region, end)
		}
		if sum.Regions == 0 || c.Region != region {
			sum.Regions++
		}
		region, end = c.Region, c.End()
		add(&sum, c)
	}
	return compare(s, sum)
}

// add adds one chunk to the sums. Address space without memory of its own does not count as
// reserved.
func add(sum *alloc.Stats, c alloc.Chunk) {
	if c.State.Held() {
		sum.Reserved += c.Size
	}
	switch c.State {
	case alloc.Live:
		sum.Live++
		sum.Requested += c.Requested
		sum.Allocated += c.Size
		sum.Active += c.Size
	case alloc.Pending:
		sum.Active += c.Size
	}
}

func compare(s, sum alloc.Stats) error {
	for _, f := range [...]struct {
		name         string
		stats, shown uint64
	}{
		{"regions", uint64(s.Regions), uint64(sum.Regions)},
		{"reserved bytes", uint64(s.Reserved), uint64(sum.Reserved)},
		{"live blocks", uint64(s.Live), uint64(sum.Live)},
		{"requested bytes", uint64(s.Requested), uint64(sum.Requested)},
		{"allocated bytes", uint64(s.Allocated), uint64(sum.Allocated)},
		{"active bytes", uint64(s.Active), uint64(sum.Active)},
	} {
		if f.stats != f.shown {
			return fmt.Errorf("%s: counted %d, the walk shows %d", f.name, f.stats, f.shown)
		}
	}
	return nil
}

package alloc_test

import (
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// toy is a strategy of a fixed number of 256-byte cells in one region at address 4096.
// It has the powers a test gives it by embedding it in a larger type.
type toy struct {
	cells  []device.Size // requested bytes; 0 is free
	stats  alloc.Stats
	closed bool
	walks  int
}

func newToy(cells int) *toy {
	s := &toy{cells: make([]device.Size, cells)}
	s.stats.RegionAdded(device.Size(cells) * 256)
	return s
}

const toyBase = 4096

func (s *toy) Alloc(r alloc.Request) (alloc.Block, error) {
	switch {
	case s.closed:
		return alloc.Block{}, alloc.ErrClosed
	case r.Size == 0 || r.Size > 256 || r.Align > 256:
		return alloc.Block{}, alloc.ErrInvalidRequest
	}
	for i, c := range s.cells {
		if c == 0 {
			s.cells[i] = r.Size
			s.stats.Granted(r.Size, 256)
			return alloc.Block{Addr: toyBase + device.Addr(i)*256, Size: 256}, nil
		}
	}
	s.stats.OOMs++
	return alloc.Block{}, alloc.ErrOutOfMemory
}

func (s *toy) Free(a device.Addr) error {
	i := (a - toyBase) / 256
	if s.closed {
		return alloc.ErrClosed
	}
	if a < toyBase || a%256 != 0 || i >= device.Addr(len(s.cells)) || s.cells[i] == 0 {
		return alloc.ErrInvalidFree
	}
	s.stats.Freed(s.cells[i], 256)
	s.cells[i] = 0
	return nil
}

func (s *toy) Stats() alloc.Stats { return s.stats }

func (s *toy) Walk(yield func(alloc.Chunk) bool) {
	s.walks++
	for i, n := range s.cells {
		c := alloc.Chunk{Region: toyBase, Addr: toyBase + device.Addr(i)*256, Size: 256, Requested: n, Class: alloc.NoClass}
		if n > 0 {
			c.State = alloc.Live
		}
		if !yield(c) {
			return
		}
	}
}

func (s *toy) Check() error { return nil }

func (s *toy) Close() error {
	s.closed = true
	return nil
}

// rich is a toy with every power.
type rich struct {
	*toy
	frontier uint64
	pools    []string // calls of PrivatePools
	tell     func(power.Action)
	plan     []power.Expected
	marks    []string
}

func (*rich) LargestFree() device.Size { return 77 }
func (s *rich) WalkFree(yield func(alloc.Chunk) bool) {
	yield(alloc.Chunk{Addr: 1, Size: 77})
}
func (*rich) Trim() (device.Size, error)                       { return 5, nil }
func (s *rich) SetFrontier(n uint64)                           { s.frontier = n }
func (s *rich) QueuedFrees() int                               { return int(s.frontier) }
func (*rich) MetadataBytes() device.Size                       { return 99 }
func (*rich) LastRefusal() (power.Refusal, bool)               { return power.Refusal{Free: 3}, true }
func (*rich) MaxRequest() device.Size                          { return 256 }
func (s *rich) ClearStats()                                    { s.stats.Clear() }
func (*rich) AppendReport(text []byte, _ alloc.Request) []byte { return append(text, "report"...) }

func (*rich) FreeNeighbours(a device.Addr) (below, above device.Size) {
	return device.Size(a), 2 * device.Size(a)
}
func (*rich) CanPlace(r alloc.Request, freed []device.Addr) bool {
	return r.Size == 8 && len(freed) == 1
}
func (*rich) Compact(may func(alloc.Chunk) bool, moved func(from, to alloc.Block)) (device.Size, error) {
	if may(alloc.Chunk{Addr: 9}) {
		moved(alloc.Block{Addr: 9, Size: 1}, alloc.Block{Addr: 8, Size: 1})
	}
	return 1, nil
}

func (s *rich) BeginPool(id alloc.PoolID, on device.Stream) error {
	s.pools = append(s.pools, fmt.Sprintf("begin %d on %d", id, uint64(on)))
	return nil
}

func (s *rich) BeginMemPool(id alloc.PoolID, on device.Stream, o power.PoolOptions) error {
	s.pools = append(s.pools, fmt.Sprintf("begin %d on %d %v", id, uint64(on), o))
	return nil
}

func (s *rich) EndPool(id alloc.PoolID) error {
	s.pools = append(s.pools, fmt.Sprintf("end %d", id))
	return nil
}

func (s *rich) ReleasePool(id alloc.PoolID) error {
	s.pools = append(s.pools, fmt.Sprintf("release %d", id))
	return alloc.ErrInvalidPool
}

func (*rich) Counters(yield func(string, int64) bool) { yield("num_ooms", 6) }

func (s *rich) SetHistory(tell func(power.Action)) { s.tell = tell }

func (s *rich) Plan(f power.Forecast) { s.plan = slices.Collect(f) }

func (s *rich) Mark(text string) { s.marks = append(s.marks, text) }

func (s *rich) Configure(settings string) error {
	s.pools = append(s.pools, "configure "+settings)
	return alloc.ErrInvalidSettings
}

package export

import (
	"encoding/json"
	"math"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/torch"
)

// Run is a replay in which everything was noted. [Replay] makes one.
type Run struct {
	strategy string          // name and preset
	config   json.RawMessage // of the strategy
	header   trace.Header    // of the trace
	events   int             // of the trace
	last     int64           // nanoseconds from the start to the end

	torch  *torch.Snapshot // the history; the segments as they are at the end
	lives  []life          // of blocks, by their start
	ooms   []oom
	marks  []mark
	calls  []call
	course course
	peak   int64       // when allocated bytes first were highest
	most   device.Size // and how many they were
}

// never is the end of a block that is there at the end.
const never = math.MaxInt64

// life is the life of one block. Times are nanoseconds.
type life struct {
	block      alloc.Block
	requested  device.Size
	id         uint64 // of the allocation in the trace
	start, end int64  // granted; free again, or never
	stack      uint32 // of the snapshot: the tag
	stream     uint16 // of the snapshot
	pool       uint16 // of the snapshot
}

// call is one call to the device. Times are nanoseconds.
type call struct {
	start  int64 // when it began
	took   int64
	size   device.Size // bytes that it is about
	event  int         // number of the event that led to it
	kind   device.Call
	failed bool
}

func (c *call) end() int64 { return c.start + c.took }

// oom is a request that found no memory.
type oom struct {
	at        int64
	requested device.Size
	id        uint64
	stream    device.Stream
	free      device.Size // of the device
}

// mark is a mark of the trace.
type mark struct {
	at   int64
	name uint32 // a string of the snapshot
}

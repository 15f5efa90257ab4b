package export

import (
	"encoding/json"
	"math"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/torch"
)

// Run is a recorded replay. [Replay] creates it.
type Run struct {
	strategy string          // name and preset
	config   json.RawMessage // of the strategy
	header   trace.Header    // of the trace
	events   int             // of the trace
	last     int64           // ns from start to end

	torch   *torch.Snapshot // the history, and the final segments
	lives   []life          // by start
	ooms    []oom
	marks   []mark
	calls   []call
	sampler curveSampler
	peak    int64       // time of the first peak of allocated bytes
	most    device.Size // the peak
}

// never is the end of a block that is live at the end.
const never = math.MaxInt64

// life is the life of a block. Times are nanoseconds.
type life struct {
	block      alloc.Block
	requested  device.Size
	id         uint64 // trace ID
	start, end int64  // granted; freed, or never
	stack      uint32 // index in the snapshot: the tag
	stream     uint16 // index in the snapshot
	pool       uint16 // index in the snapshot
}

// call is a driver call. Times are nanoseconds.
type call struct {
	start  int64 // when it began
	took   int64
	size   device.Size // its size argument
	event  int         // index of the event that caused it
	kind   device.Call
	failed bool
}

func (c *call) end() int64 { return c.start + c.took }

// oom is a request that ran out of memory.
type oom struct {
	at        int64
	requested device.Size
	id        uint64
	stream    device.Stream
	free      device.Size // free device memory
}

// mark is a mark of the trace.
type mark struct {
	at   int64
	name uint32 // index of a string in the snapshot
}

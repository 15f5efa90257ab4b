package async

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/streampool"
)

func (c Config) Promises() promise.Set {
	fits := promise.ServesAnywhere(streampool.Quantum)
	return promise.Set{
		Quantum:  streampool.Quantum,
		Honours:  func(alloc.Request) bool { return true },
		MaxGrant: func(r alloc.Request) device.Size { return device.AlignUp(r.Size, streampool.Quantum) },
		MustMerge: func(left, right alloc.Chunk) bool {
			return left.Owner == right.Owner && left.Stream == right.Stream
		},
		ExactNeighbours: true,
		ClassOf:         func(alloc.Chunk) int32 { return alloc.NoClass },
		// Chunks of another stream serve only after a synchronization.
		Serves: func(f alloc.Chunk, r alloc.Request) bool {
			return (f.Owner == OwnerNone || f.Stream == r.Stream) && fits(f, r)
		},
		Boundaries: promise.PowersOfTwo(streampool.Quantum, device.GiB),
		Except: []promise.Exception{
			{Invariant: "I39", Reason: "the stream of a request chooses what is free for it"},
		},
	}
}

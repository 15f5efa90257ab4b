package postmortem

import (
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/verify"
	"github.com/vramyard/vramyard/harness/trace/torch"
)

// Recording is a device of a PyTorch memory snapshot, with a model of the recorded allocator.
type Recording struct {
	Snapshot *torch.Snapshot // the file
	Timeline *torch.Timeline // the history of the device; its trace has been made
	Target   *verify.Target  // the strategy that models the recorded allocator, with the recorded settings
	Promises promise.Set     // of that strategy
}

// ErrNoRefusal: no request was refused at the entry.
var ErrNoRefusal = errors.New("no request was refused at this entry")

// Refusals returns the entries with refused requests, in order.
func (r *Recording) Refusals() (entries []int) {
	for i, s := range r.Timeline.Steps {
		if s == torch.Refused {
			entries = append(entries, i)
		}
	}
	return entries
}

// AtEntry explains the request refused at an entry. The heap is the file's if nothing happened
// since, otherwise it is reconstructed by [verify.HeapAt].
//
// Errors: ErrNoRefusal, and errors of verify.HeapAt.
func (r *Recording) AtEntry(entry int) (*Report, error) {
	if entry < 0 || entry >= len(r.Timeline.Steps) || r.Timeline.Steps[entry] != torch.Refused {
		return nil, fmt.Errorf("entry %d: %w", entry, ErrNoRefusal)
	}
	event := r.Timeline.Events[entry]
	h := &r.Timeline.Device.History
	e := h.At(entry)
	l := r.livesAt(entry)
	free := device.Size(e.Addr)
	heap := &Heap{DeviceFree: &free}
	pools := r.filePools()
	if r.nothingAfter(entry) {
		heap.Chunks = r.fileChunks(l, pools)
	} else {
		recorded, err := verify.FromTimeline(r.Timeline)
		if err != nil {
			return nil, err
		}
		if heap.Chunks, err = verify.HeapAt(recorded, r.Target, entry); err != nil {
			return nil, err
		}
		pools = recorded.Pools
		l.mark(heap.Chunks)
	}
	request := alloc.Request{Size: device.Size(e.Size), Stream: device.Stream(h.Streams[e.Stream])}
	var pool alloc.PoolID
	if h.Pools != nil {
		pool = poolOf(pools, h.Pools[e.Pool])
	}
	why := Explain(heap, r.need(heap, request, pool), l.ownerLookup(event))
	stack, _ := l.of.Lines(e.Stack)
	why.Requester = &Owner{Known: true, Born: event, Stack: stack}
	return why, nil
}

// AtEnd explains why a request would be refused at the end of the snapshot with the given free
// device memory; nil: unknown. The cause is CauseNone if it would be granted.
func (r *Recording) AtEnd(request alloc.Request, free *device.Size) *Report {
	end := len(r.Timeline.Steps)
	l := r.livesAt(end)
	heap := &Heap{Chunks: r.fileChunks(l, r.filePools()), DeviceFree: free}
	report := Explain(heap, r.need(heap, request, 0), l.ownerLookup(r.Timeline.Events[end]))
	if report.Cause == CauseAgain || report.Cause == CauseDevice {
		report.Cause, report.Verdict = CauseNone, "it would be granted"
	}
	return report
}

func (r *Recording) need(h *Heap, request alloc.Request, pool alloc.PoolID) Need {
	n := Need{Request: request, Pool: pool, Returns: true, Fits: fitsOf(r.Promises), PageOf: torchPages(r.Promises)}
	n.Block = leastBlock(&n, r.Promises)
	if r.Target.Segment != nil {
		n.Segment = r.Target.Segment(n.Block)
	}
	n.grow(h)
	return n
}

func (r *Recording) nothingAfter(entry int) bool {
	for _, s := range r.Timeline.Steps[entry:] {
		if s != torch.None && s != torch.Refused {
			return false
		}
	}
	for _, t := range r.Timeline.Traffic {
		if t.Entry > entry {
			return false
		}
	}
	return true
}

func (r *Recording) filePools() (pools [][2]uint64) {
	for i := range r.Timeline.Device.Segments {
		if p := r.Timeline.Device.Segments[i].Pool; p != [2]uint64{} && poolOf(pools, p) == 0 {
			pools = append(pools, p)
		}
	}
	return pools
}

// poolOf returns the number of a private pool, 0 for the default pool and for pools without memory.
func poolOf(pools [][2]uint64, p [2]uint64) alloc.PoolID {
	for i, q := range pools {
		if p == q {
			return alloc.PoolID(i + 1)
		}
	}
	return 0
}

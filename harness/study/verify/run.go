package verify

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// mostDisagreements bounds how often a strategy is rebuilt, at a cost of a step for each live
// block: a wrong setting would make the run quadratic.
const mostDisagreements = 1000

// run is the state of a verification.
type run struct {
	t      *Target
	kept   *History // the possible part of the history
	layout *layout  // the recorded heap
	device *script
	s      Seedable
	taken  device.Region   // segment reserved in the recording for the next allocation
	maps   []device.Region // ranges mapped for it
	wrong  int             // disagreements so far
	confs  []string        // settings of Configure so far
	ranges spans           // starts of ranges
	res    *Result
}

// Run replays the history through the target. Allocations that are not predicted are part of the
// result; impossible steps are counted and skipped. It fails if the strategy rejects the opening
// state or breaks its contract.
func Run(h *History, t *Target) (*Result, error) {
	r, err := begin(h, t)
	if err != nil {
		return nil, err
	}
	if err := r.steps(r.kept.Steps); err != nil {
		return nil, err
	}
	if r.res.Stopped != "" {
		return r.res, nil
	}
	if err := r.s.Check(); err != nil {
		return nil, fmt.Errorf("at the end: %w", err)
	}
	return r.res, r.end()
}

// HeapAt returns the recorded heap before the first step of an event, as Walk would. Tags are
// allocation IDs; pending blocks are shown as live. Sizes are exact where the target predicts the
// recording; otherwise rounding is inferred from the next block.
//
// Errors: as [Run], and recordings with too many disagreements.
func HeapAt(h *History, t *Target, event int) ([]alloc.Chunk, error) {
	r, err := begin(h, t)
	if err != nil {
		return nil, err
	}
	steps := r.kept.Steps
	if n := slices.IndexFunc(steps, func(s Step) bool { return s.Event >= event }); n >= 0 {
		steps = steps[:n]
	}
	if err := r.steps(steps); err != nil {
		return nil, err
	}
	if r.res.Stopped != "" {
		return nil, fmt.Errorf("the heap at event %d is unknown: %s", event, r.res.Stopped)
	}
	chunks := r.layout.chunks(t)
	for i := range chunks {
		if c := &chunks[i]; c.State == alloc.Live {
			p, _ := r.layout.blocks.Search(c.Addr)
			c.Tag = r.layout.blocks.Entry(p).Value.id
		}
	}
	return chunks, nil
}

// begin surveys a history and builds the strategy on its opening state.
func begin(h *History, t *Target) (*run, error) {
	r := &run{t: t, res: &Result{
		Schema: Schema, Strategy: t.Strategy, Config: t.Config, Trace: h.Name, TraceHash: h.Hash, Addresses: h.Addr,
		OpeningBlocks: len(h.Blocks),
	}}
	r.kept = r.survey(h)
	r.layout = &layout{spans: r.ranges}
	r.enter(r.kept)
	r.res.OpeningBytes = r.layout.held
	if err := r.seed(); err != nil {
		return nil, fmt.Errorf("on the recorded heap: %w", err)
	}
	return r, nil
}

func (r *run) steps(steps []Step) error {
	for _, s := range steps {
		if err := r.step(s); err != nil {
			return fmt.Errorf("event %d: %v at %v: %w", s.Event, s.Kind, s.Addr, err)
		}
		if r.res.Stopped != "" {
			return nil
		}
	}
	return nil
}

// enter puts the opening state into the layout, and returns its possible part.
func (r *run) enter(h *History) (segments []Segment, blocks []Block) {
	for _, s := range h.Segments {
		if err := r.layout.addSegment(s); err != nil {
			r.inconsistent(openingState, err)
			continue
		}
		segments = append(segments, s)
	}
	for _, b := range h.Blocks {
		if err := r.layout.addOpening(b); err != nil {
			r.inconsistent(openingState, err)
			continue
		}
		blocks = append(blocks, b)
	}
	return segments, blocks
}

// openingState is the number of the event for the opening state.
const openingState = -1

func (r *run) inconsistent(event int, err error) {
	if r.res.Inconsistent == 0 {
		place := "opening state"
		if event != openingState {
			place = fmt.Sprintf("event %d", event)
		}
		r.res.FirstInconsistency = fmt.Sprintf("%s: %v", place, err)
	}
	r.res.Inconsistent++
}

// survey scans a history once. It counts, and returns its possible part, with the sizes of opening
// blocks that later steps reveal.
func (r *run) survey(h *History) *History {
	r.layout = &layout{}
	l, kept := r.layout, *h
	kept.Segments, kept.Blocks = r.enter(h)
	kept.Steps = nil
	r.ranges.lows = l.spans.bases()
	r.res.Recorded = l.held
	for i, s := range h.Steps {
		if s.Kind == Alloc {
			r.res.Allocs++
			if at, size, ok := l.settle(s.Addr, r.t); ok {
				learn(kept.Blocks, at, size, l)
			}
		}
		if err := l.apply(s, 0); err != nil {
			r.inconsistent(s.Event, err)
			continue
		}
		if len(kept.Steps) == i { // all are possible so far: share them
			kept.Steps = h.Steps[: i+1 : i+1]
		} else {
			kept.Steps = append(kept.Steps, s)
		}
		if s.Kind == SegmentAlloc || s.Kind == SegmentMap {
			r.res.Segments++
			l.spans.lower(r.ranges.lows)
		}
		r.res.Recorded = max(r.res.Recorded, l.held)
	}
	r.ranges.ever, r.ranges.tops = withSegments(l.spans.ever, &kept), l.spans.tops
	return &kept
}

// learn sets the size of the live block at an address, if it is an opening block.
func learn(blocks []Block, at device.Addr, size device.Size, l *layout) {
	p, _ := l.blocks.Search(at)
	i, found := slices.BinarySearchFunc(blocks, at, func(b Block, a device.Addr) int {
		return cmp.Compare(b.Addr, a)
	})
	if found && blocks[i].ID == l.blocks.Entry(p).Value.id {
		blocks[i].Size = size
		l.fix(at, size)
	}
}

// seed builds the strategy on the recorded heap, and fixes the sizes of its blocks.
func (r *run) seed() error {
	chunks := r.layout.chunks(r.t)
	for _, c := range chunks {
		if c.State == alloc.Live {
			r.layout.fix(c.Addr, c.Size)
		}
	}
	r.device = newScript(r.layout)
	s, err := r.t.Open(r.device, chunks)
	if err != nil {
		return err
	}
	r.s = s
	for _, conf := range r.confs {
		if err := power.Configure(r.s, conf); err != nil {
			return fmt.Errorf("settings %q: %w", conf, err)
		}
	}
	return nil
}

func (r *run) end() error {
	r.res.Reserved = max(r.res.Reserved, r.device.peak)
	r.device.ending = true
	return r.s.Close()
}

func (r *run) step(s Step) error {
	switch s.Kind {
	case Alloc:
		return r.alloc(s)
	case Free:
		if err := r.s.Free(s.Addr); err != nil {
			return err
		}
	case Configure:
		if err := power.Configure(r.s, s.Conf); err != nil {
			r.res.Stopped = fmt.Sprintf("event %d: settings %q: %v", s.Event, s.Conf, err)
		}
		r.confs = append(r.confs, s.Conf)
	case SegmentAlloc:
		r.taken = device.Region{Addr: s.Addr, Size: s.Size}
	case SegmentMap:
		r.maps = append(r.maps, device.Region{Addr: s.Addr, Size: s.Size})
	case SegmentFree, SegmentUnmap:
		r.device.freed = device.Region{Addr: s.Addr, Size: s.Size}
		if err := r.s.ReleaseSegment(s.Addr); err != nil {
			return err
		}
		r.device.freed = device.Region{}
	}
	if r.device.disagrees() {
		return fmt.Errorf("the strategy reserved or released memory without a request: %v", r.device.wanted)
	}
	return r.layout.apply(s, 0)
}

func (r *run) alloc(s Step) error {
	r.device.next, r.device.maps = r.taken, r.maps
	recorded := Placement{Block: s.Addr, Segment: r.device.left()}
	b, err := r.request(s)
	predicted := Placement{Block: b.Addr}
	switch {
	case r.device.disagrees():
		predicted = r.device.wanted
	case errors.Is(err, alloc.ErrOutOfMemory), errors.Is(err, alloc.ErrInvalidRequest):
		predicted = Placement{}
	case err != nil:
		return err
	default:
		predicted.Segment = recorded.Segment - r.device.left()
	}
	same := predicted == recorded
	size := b.Size
	if !same {
		size = 0
	}
	if err := r.layout.apply(s, size); err != nil {
		return err
	}
	if !same {
		if r.layout.poolUnknownAt(s.Addr) || r.layout.poolUnknownAt(predicted.Block) {
			r.res.UnknownPool++
		}
		r.disagree(&Disagreement{
			Event: s.Event, ID: s.ID, Size: s.Size, Stream: s.Stream, Predicted: predicted, Recorded: recorded,
		})
		return nil
	}
	r.res.Predicted++
	if r.taken.Size != 0 {
		r.res.PredictedSegments++
	}
	r.res.PredictedSegments += len(r.maps)
	r.served()
	return nil
}

func (r *run) served() { r.taken, r.maps = device.Region{}, r.maps[:0] }

// request passes the request of a step to the strategy, in the recorded pool.
func (r *run) request(s Step) (b alloc.Block, err error) {
	pool := r.layout.poolAt(s.Addr)
	if pool != 0 {
		if err := power.BeginPool(r.s, pool, power.AllStreams); err != nil {
			return b, err
		}
	}
	b, err = r.s.Alloc(alloc.Request{Size: s.Size, Stream: s.Stream, ID: s.ID})
	if pool == 0 {
		return b, err
	}
	// Drops the pool's user added for the redirection; the program's users stay.
	if failed := errors.Join(power.EndPool(r.s, pool), power.ReleasePool(r.s, pool)); failed != nil {
		return b, failed
	}
	return b, err
}

// disagree records a disagreement and rebuilds the strategy on the recorded heap. The old one is
// abandoned without Close, since its device no longer matches it.
func (r *run) disagree(d *Disagreement) {
	if r.res.First == nil {
		r.res.First = d
	}
	r.served()
	r.wrong++
	r.res.Reserved = max(r.res.Reserved, r.device.peak)
	if r.wrong == mostDisagreements {
		r.res.Stopped = fmt.Sprintf("event %d: %d disagreements", d.Event, r.wrong)
	} else if err := r.seed(); err != nil {
		r.res.Stopped = fmt.Sprintf("event %d: %v", d.Event, err)
	}
}

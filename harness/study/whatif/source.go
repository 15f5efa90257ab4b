package whatif

import (
	"slices"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// SurveyedTrace is a trace with its demand, refused requests included.
type SurveyedTrace struct {
	trace.Source
	Demand   setting.Demand // sizes and private pools of all requests, polls and changes of settings
	Refusals trace.Refusals // of the recorded program
	Rounded  bool           // some refusals have rounded sizes only
	Empty    bool           // there are no requests after the start
	Streams  int            // streams with requests
	Marks    trace.Marks    // marks of the trace
	Pools    int            // private pools to which requests are redirected
	Captures int            // redirections of one stream, as by captures of graphs
	MemPools bool           // there are redirections of all streams, as by MemPools
	// a pool is begun before anything else, as for its blocks that were live when a history began
	PoolFirst bool
}

// Survey surveys a trace. It reads the trace once.
func Survey(src trace.Source) (*SurveyedTrace, error) {
	s := surveyor{w: &SurveyedTrace{Source: src}, sizes: map[device.Size]struct{}{}, streams: map[device.Stream]struct{}{},
		pools: map[uint64]struct{}{}}
	if err := src.Batches(s.take); err != nil {
		return nil, err
	}
	w := s.w
	w.Empty = s.covered.Empty()
	for n := range s.sizes {
		w.Demand.Sizes = append(w.Demand.Sizes, n)
	}
	slices.Sort(w.Demand.Sizes)
	w.Streams, w.Pools = len(s.streams), len(s.pools)
	return w, nil
}

// surveyor surveys a trace.
type surveyor struct {
	w       *SurveyedTrace
	sizes   map[device.Size]struct{}
	streams map[device.Stream]struct{}
	pools   map[uint64]struct{}
	events  int           // before the current batch
	size    device.Size   // of the last request
	stream  device.Stream // of the last request
	covered trace.Coverage
	started bool // there was an event other than trace.LiveAtStart
}

func (s *surveyor) take(events []trace.Event) error {
	for i := range events {
		e := &events[i]
		s.w.Refusals.Step(e)
		s.covered.Step(e)
		if e.Kind != trace.LiveAtStart && !s.started {
			s.started, s.w.PoolFirst = true, e.Kind == trace.PoolBegin
		}
		switch e.Kind {
		case trace.Alloc, trace.LiveAtStart:
			s.request(e)
		case trace.Refused:
			s.request(e)
			s.w.Rounded = s.w.Rounded || s.w.TagOf(e) == trace.RoundedTag
		case trace.PoolBegin:
			s.w.Demand.Pools = true
			o, err := trace.PoolOptions(s.w.TagOf(e))
			if err != nil {
				return err
			}
			all := &s.w.Demand.Options
			all.UseOnOOM, all.NoSplit = all.UseOnOOM || o.UseOnOOM, all.NoSplit || o.NoSplit
			s.pools[e.Arg] = struct{}{}
			if e.Stream == trace.AllStreams {
				s.w.MemPools = true
			} else {
				s.w.Captures++
			}
		case trace.Poll:
			s.w.Demand.Polls = true
		case trace.Mark:
			s.w.Marks.Add(s.w.TagOf(e), s.events+i)
		case trace.Conf:
			s.w.Demand.Changes = true
		}
	}
	s.events += len(events)
	return nil
}

func (s *surveyor) request(e *trace.Event) {
	if e.Size != s.size {
		s.size = e.Size
		s.sizes[e.Size] = struct{}{}
	}
	if e.Stream != s.stream || len(s.streams) == 0 {
		s.stream = e.Stream
		s.streams[e.Stream] = struct{}{}
	}
}

package torch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/torch"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/internal/budget"
)

// program is a program whose memory can be recorded at any time.
type program struct {
	entries []torch.Entry
	stacks  []string // by entry: the function that made it, or the settings that it sets
	blocks  []torch.Block
	streams []int64
	marks   []int64 // times of its annotations
	now     int64
}

const programSegment = 1 << 30

func newProgram() *program {
	return &program{now: 1_000_000, streams: []int64{0, 77}}
}

func (p *program) add(e torch.Entry, function string) {
	p.now += 40
	e.Time = p.now
	p.entries, p.stacks = append(p.entries, e), append(p.stacks, function)
}

// steps runs random requests, a third of them the same in each step.
func (p *program) steps(rng *workload.Rand, n int) {
	for range n {
		p.marks = append(p.marks, p.now+1)
		fixed := torch.Entry{Action: torch.ActionAlloc, Addr: 1 << 40, Size: 300}
		p.add(fixed, "forward")
		for range 3 {
			at := uint64(1<<32) + rng.Below(64)*512
			i := slices.IndexFunc(p.blocks, func(b torch.Block) bool { return b.Addr == at })
			if i < 0 {
				p.blocks = append(p.blocks, block(at, 1+rng.Below(500)))
				e := torch.Entry{Action: torch.ActionAlloc, Addr: at, Size: p.blocks[len(p.blocks)-1].Requested}
				e.Stream = uint16(rng.Below(2))
				p.add(e, fmt.Sprint("layer", rng.Below(3)))
				continue
			}
			p.free(at, p.blocks[i].Requested)
			p.blocks = slices.Delete(p.blocks, i, i+1)
		}
		p.free(fixed.Addr, fixed.Size)
	}
}

func (p *program) free(addr, size uint64) {
	p.add(torch.Entry{Action: torch.ActionFreeRequested, Addr: addr, Size: size}, "")
	p.add(torch.Entry{Action: torch.ActionFreeCompleted, Addr: addr, Size: size}, "")
}

// snapshot returns a snapshot with the last most entries, whose clock is off by some microseconds.
func (p *program) snapshot(most int, off int64, conf string) *torch.Snapshot {
	s := &torch.Snapshot{Settings: []torch.Setting{{Key: "PYTORCH_CUDA_ALLOC_CONF", Value: conf, Text: true}}}
	in := torch.NewInterner(s)
	d := torch.Device{Segments: []torch.Segment{
		{Addr: 1 << 32, Total: programSegment}, {Addr: 1 << 40, Total: programSegment},
	}}
	d.Segments[0].Blocks = slices.Clone(p.blocks)
	from := max(0, len(p.entries)-most)
	if off%2 != 0 { // streams and functions get other numbers
		in.String("unused")
		d.History.Streams = []int64{77, 0}
	} else {
		d.History.Streams = p.streams
	}
	for i, e := range p.entries[from:] {
		if function := p.stacks[from+i]; e.Action == torch.ActionConf {
			e.Category, d.History.Confs = uint32(len(d.History.Confs)), append(d.History.Confs, function)
		} else if function != "" {
			e.Stack = in.Stack([]uint32{in.Frame(torch.Frame{File: in.String("a.py"), Function: in.String(function), Line: 1})})
		}
		e.Time += off
		if off%2 != 0 {
			e.Stream = 1 - e.Stream
		}
		d.History.Append(e)
	}
	for i, at := range p.marks {
		s.Annotations = append(s.Annotations, torch.Annotation{
			Name: in.String(fmt.Sprint("step", i)), Start: true, Time: at + off,
		})
	}
	s.Devices = []torch.Device{d}
	return s
}

func joined(t *testing.T, files ...*torch.Snapshot) *trace.Trace {
	t.Helper()
	s, err := torch.Join(named(files...), nil)
	require.NoError(t, err)
	r, err := torch.Traces(s)
	require.NoError(t, err)
	require.Empty(t, r[0].Report.Findings)
	return r[0].Trace
}

func named(files ...*torch.Snapshot) (list []torch.File) {
	for i, s := range files {
		list = append(list, torch.File{Name: string(rune('a'+i)) + ".pickle", Snapshot: s})
	}
	return list
}

// TestJoinedSnapshotsAreTheWholeRecording cuts random recordings into overlapping ones. Joined in
// any order they are the recording again, with the changes of settings where an earlier one ends.
func TestJoinedSnapshotsAreTheWholeRecording(t *testing.T) {
	for seed := range uint64(40) {
		rng := workload.NewRand(seed)
		p, before := newProgram(), ""
		var parts []*torch.Snapshot
		var confs []int
		most, last, first := 40+int(rng.Below(3000)), 0, 0
		for i, conf := range []string{"", "max_split_size_mb:20", "max_split_size_mb:20", "a:b"} {
			if conf != before {
				confs, before = append(confs, last), conf
			}
			for len(p.entries)-last < most/2 {
				p.steps(rng, 1)
			}
			last = len(p.entries)
			if parts = append(parts, p.snapshot(most, int64(i*(i-2)), conf)); i == 0 {
				first = max(0, last-most)
			}
		}
		for i, conf := range []string{"a:b", "max_split_size_mb:20"} {
			at := confs[1-i]
			e := torch.Entry{Action: torch.ActionConf, Time: p.entries[at-1].Time}
			p.entries, p.stacks = slices.Insert(p.entries, at, e), slices.Insert(p.stacks, at, conf)
		}
		whole, err := torch.Traces(p.snapshot(len(p.entries)-first, 0, ""))
		require.NoError(t, err)
		slices.Reverse(parts[:rng.Below(5)])
		require.Equal(t, lines(t, whole[0].Trace), lines(t, joined(t, parts...)), "seed %d", seed)
	}
}

func TestSettingsThatDifferAreChangedBetweenTheSnapshots(t *testing.T) {
	conf := func(text, grows string) []torch.Setting {
		return []torch.Setting{
			{Key: "PYTORCH_CUDA_ALLOC_CONF", Value: text, Text: true}, {Key: "expandable_segments", Value: grows},
		}
	}
	for _, c := range []struct {
		before, after []torch.Setting
		want          string
	}{
		{conf("", "False"), conf("max_split_size_mb:20", "False"), "conf max_split_size_mb:20"},
		{conf("max_split_size_mb:20", "False"), conf("", "False"), `conf ""`},
		{conf("max_split_size_mb:20", "False"), conf("max_split_size_mb:20", "False"), ""},
		{conf("", "False"), conf("expandable_segments:True", "True"), "conf expandable_segments:True"},
		{conf("", "False"), conf("max_split_size_mb:20", "True"), "conf max_split_size_mb:20,expandable_segments:True"},
		{conf("expandable_segments:True", "True"), conf("", "True"), ""},
		{conf("expandable_segments:True", "True"), conf("", "False"), "conf expandable_segments:False"},
		{nil, conf("max_split_size_mb:20", "False"), ""}, // not known
		{conf("max_split_size_mb:20", "False"), nil, ""},
	} {
		a := one().alloc(base, 10)
		b := one().alloc(base, 10).alloc(base+512, 20).segment(small, block(base, 10), block(base+512, 20))
		a.s.Devices, b.s.Devices = []torch.Device{a.d}, []torch.Device{b.d}
		a.s.Settings, b.s.Settings = c.before, c.after
		want := []string{"a 0 10", c.want, "a 1 20"}
		if c.want == "" {
			want = []string{"a 0 10", "a 1 20"}
		}
		tr := joined(t, &a.s, &b.s)
		require.Equal(t, want, lines(t, tr))
		config, _ := tr.Header.Get(torch.KeyConfig)
		require.JSONEq(t, string(torch.Config(c.before)), config)
	}
}

func TestSnapshotsThatDoNotOverlapAreRefused(t *testing.T) {
	p := newProgram()
	rng := workload.NewRand(1)
	p.steps(rng, 100)
	a := p.snapshot(50, 0, "")
	p.steps(rng, 100)
	b := p.snapshot(50, 0, "")
	other := newProgram()
	other.steps(workload.NewRand(2), 200)
	second := p.snapshot(1000, 0, "")
	second.Devices[0].Ordinal = 1
	untimed := one()
	untimed.t = torch.NoTime
	untimed.alloc(base, 10)
	untimed.s.Devices = []torch.Device{untimed.d}
	for _, c := range []struct {
		files []*torch.Snapshot
		want  string
	}{
		{[]*torch.Snapshot{a, b}, "b.pickle: the history of cuda:0 begins at 1057440 µs, 28.08ms after a.pickle ends at " +
			"1029360 µs, and the entries between them are lost: raise max_entries of _record_memory_history, or write " +
			"snapshots more often"},
		{[]*torch.Snapshot{b, a}, "a.pickle: the history of cuda:0 begins at"},
		{[]*torch.Snapshot{a, other.snapshot(10000, 0, "")}, "b.pickle: the history of cuda:0 has other entries than " +
			"a.pickle from 1000040 to 1029360 µs: want snapshots of one process"},
		{[]*torch.Snapshot{a, p.snapshot(10000, 5000, "")}, "b.pickle: the history of cuda:0 has other entries than a"},
		{[]*torch.Snapshot{a, second}, "b.pickle: has no history of cuda:0 as a.pickle has: want snapshots of one process"},
		{[]*torch.Snapshot{a, &untimed.s}, "b.pickle: has no history with times, so its place in the run is unknown: want " +
			"snapshots of PyTorch 2.2 or newer"},
		{[]*torch.Snapshot{a, {}}, "b.pickle: has no history with times"},
	} {
		_, err := torch.Join(named(c.files...), nil)
		require.ErrorContains(t, err, c.want)
		require.True(t, strings.HasPrefix(err.Error(), c.want))
	}
}

// TestJoiningKeepsWhatAHistoryLost compares what the report says of a joined history with what it
// says of its earliest file.
func TestJoiningKeepsWhatAHistoryLost(t *testing.T) {
	p := newProgram()
	rng := workload.NewRand(1)
	p.steps(rng, 300)
	a := p.snapshot(1000, 0, "")
	before := len(p.entries)
	p.steps(rng, 300) // with a larger ring
	wrapped, _ := joined(t, a, p.snapshot(1000+len(p.entries)-before, 0, "")).Header.Get(torch.KeyWrapped)
	require.Equal(t, "it has exactly 1000 entries and begins with blocks in use", wrapped)
}

func TestJoiningTakesADeviceThatIsUsedLater(t *testing.T) {
	p := newProgram()
	rng := workload.NewRand(1)
	p.steps(rng, 10)
	a := p.snapshot(1000, 0, "")
	p.steps(rng, 10)
	b := p.snapshot(1000, 0, "max_split_size_mb:20")
	more := one().alloc(base, 10).segment(small, block(base, 10)).d
	more.Ordinal = 3
	b.Devices = append(b.Devices, more)
	s, err := torch.Join(named(a, b), nil)
	require.NoError(t, err)
	r, err := torch.Traces(s)
	require.NoError(t, err)
	require.Len(t, r, 2)
	require.Equal(t, []string{"conf max_split_size_mb:20", "a 0 10"}, lines(t, r[1].Trace))
}

func TestJoiningIsChargedToTheBudget(t *testing.T) {
	p := newProgram()
	rng := workload.NewRand(1)
	p.steps(rng, 2000)
	a := p.snapshot(1<<20, 0, "")
	p.steps(rng, 10)
	_, err := torch.Join(named(a, p.snapshot(1<<20, 0, "")), budget.New(10<<10))
	require.ErrorContains(t, err, "takes more than 10KiB of memory")
}

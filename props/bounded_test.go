package props_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/props"
)

// wasting is a strategy without a limit: a free list for each size, over regions of one
// block each, or with a bug of its own.
type wasting struct {
	alloc.Strategy // nil: Bounded calls nothing else
	src            device.Source
	bug            string
	free           map[device.Size][]device.Addr
	live           map[device.Addr]device.Size
	stats          alloc.Stats
	whole          device.Region // taken in advance
	used           device.Size   // of it
}

const (
	losesEveryHundredth = "every hundredth block freed is forgotten"
	creeps              = "memory is taken in advance, and every hundredth block freed is forgotten"
	exactFit            = "a block serves requests of its exact size only"
	runsOut             = "the thousandth request runs out of memory"
	losesBlocks         = "the thousandth block cannot be freed"
)

func (w *wasting) Alloc(r alloc.Request) (alloc.Block, error) {
	n := promise.PowerOfTwo(r.Size, 64*device.KiB)
	if w.bug == exactFit {
		n = r.Size
	}
	w.stats.Allocs++
	if w.bug == runsOut && w.stats.Allocs == 1000 {
		return alloc.Block{}, alloc.ErrOutOfMemory
	}
	if list := w.free[n]; len(list) > 0 {
		w.free[n] = list[:len(list)-1]
		w.live[list[len(list)-1]] = n
		return alloc.Block{Addr: list[len(list)-1], Size: n}, nil
	}
	if w.bug == creeps {
		a := w.whole.Addr.Add(w.used)
		w.used += n
		w.live[a] = n
		return alloc.Block{Addr: a, Size: n}, nil
	}
	region, err := w.src.Reserve(n, 0)
	if err != nil {
		return alloc.Block{}, alloc.ErrOutOfMemory
	}
	w.stats.Reserved += region.Size
	w.live[region.Addr] = n
	return alloc.Block{Addr: region.Addr, Size: n}, nil
}

func (w *wasting) Free(a device.Addr) error {
	n := w.live[a]
	delete(w.live, a)
	w.stats.Frees++
	switch {
	case w.bug == losesBlocks && w.stats.Frees == 1000:
		return alloc.ErrInvalidFree
	case (w.bug == losesEveryHundredth || w.bug == creeps) && w.stats.Frees%100 == 0:
		return nil
	}
	w.free[n] = append(w.free[n], a)
	return nil
}

func (w *wasting) Stats() alloc.Stats { return w.stats }
func (w *wasting) Close() error       { return nil }

func (w *wasting) Walk(yield func(alloc.Chunk) bool) {
	yield(alloc.Chunk{Region: w.whole.Addr, Addr: w.whole.Addr, Size: w.stats.Reserved})
}

// wastingSubject returns the strategy with a bug; none is a plain one.
func wastingSubject(b string) props.Subject {
	build := func(src device.Source, b string) (*wasting, error) {
		w := &wasting{src: src, bug: b, free: map[device.Size][]device.Addr{}, live: map[device.Addr]device.Size{}}
		if b != creeps {
			return w, nil
		}
		var err error
		w.whole, err = src.Reserve(device.TiB, 0)
		w.stats.Reserved = w.whole.Size
		return w, err
	}
	return props.SubjectOf(b, build, b, sim.Config{}, promise.Set{Quantum: 64 * device.KiB})
}

func TestBoundedPassesBoundedStrategy(t *testing.T) {
	for _, p := range []props.Pattern{props.Steady, props.Queue, props.Phases} {
		g, err := props.Bounded(wastingSubject(""), props.Churn{Pattern: p, Operations: 20_000})
		require.NoError(t, err)
		t.Log(g)
		assert.Greater(t, g.PeakLive, 7*device.GiB, "the run reaches its bound")
		assert.LessOrEqual(t, g.PeakLive, 8*device.GiB)
		assert.GreaterOrEqual(t, g.Touched, g.PeakLive)
	}
}

func TestBoundedFindsGrowth(t *testing.T) {
	for b, want := range map[string]struct {
		number props.Number
		text   string
	}{
		losesEveryHundredth: {props.IBounded, "were held in the first quarter"},
		creeps:              {props.IBounded, "were touched in the first quarter"},
		exactFit:            {props.IBounded, "were held in the first quarter"},
		runsOut:             {props.IBounded, "out of memory"},
		losesBlocks:         {props.IFreeAnswer, "invalid free"},
	} {
		t.Run(b, func(t *testing.T) {
			_, err := props.Bounded(wastingSubject(b), props.Churn{Operations: 20_000})
			requireBroken(t, want.number, err)
			assert.ErrorContains(t, err, want.text)
		})
	}
}

// TestBoundedWithStreams runs the patterns that need powers.
func TestBoundedWithStreams(t *testing.T) {
	all, err := props.Patterns(pooledSubject(none))
	require.NoError(t, err)
	require.Equal(t, []props.Pattern{props.Steady, props.Queue, props.Phases, props.Streams, props.Captures}, all)
	few, err := props.Patterns(firstFitSubject(none))
	require.NoError(t, err)
	require.Equal(t, []props.Pattern{props.Steady, props.Queue, props.Phases}, few)
	for b, want := range map[bug]struct {
		pattern props.Pattern
		number  props.Number
	}{
		none:            {},
		forgetsMarks:    {props.Streams, props.IBounded},
		trimSparesPools: {props.Captures, props.IBounded},
		releasesNone:    {props.Captures, props.IPoolAnswer},
	} {
		t.Run(string(b), func(t *testing.T) {
			subject := pooledSubject(b)
			subject.Device.Capacity = 0
			for _, p := range []props.Pattern{props.Streams, props.Captures} {
				g, err := props.Bounded(subject, props.Churn{Pattern: p, Operations: 20_000, Live: 256 * device.KiB})
				t.Log(p, g)
				if p != want.pattern {
					require.NoError(t, err)
					continue
				}
				requireBroken(t, want.number, err)
				var u *props.Unbounded
				require.ErrorAs(t, err, &u)
				t.Log(u)
				require.Contains(t, u.Error(), "pool 0, stream 1, class 1: ")
				var file bytes.Buffer
				require.NoError(t, u.WriteTrace(&file))
				read, err := trace.Read(&file, "unbounded.trace", trace.Options{})
				require.NoError(t, err)
				require.Greater(t, len(read.Events), u.Call)
				if b == releasesNone {
					require.Equal(t, trace.PoolRelease, read.Events[len(read.Events)-1].Kind,
						"the trace ends with the call that broke it")
				}
			}
		})
	}
}

package alloc_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
)

// wrapped returns s without a wrapper and inside every wrapper, by name.
func wrapped(t *testing.T, s alloc.Strategy) map[string]alloc.Strategy {
	t.Helper()
	limited, err := wrap.Limited(s, 1<<40)
	require.NoError(t, err)
	recorded, err := wrap.Recorded(limited, func(wrap.Operation) {})
	require.NoError(t, err)
	locked, err := wrap.Locked(recorded)
	require.NoError(t, err)
	retrying, err := wrap.Retrying(locked, 0)
	require.NoError(t, err)
	return map[string]alloc.Strategy{"bare": s, "limited": limited, "recorded": recorded, "locked": locked,
		"retrying": retrying}
}

func TestPowersPassThroughEveryWrapper(t *testing.T) {
	for name, s := range wrapped(t, &rich{toy: newToy(4)}) {
		require.Equal(t, device.Size(77), power.LargestFree(s), name)
		n, err := power.Trim(s)
		require.NoError(t, err, name)
		require.Equal(t, device.Size(5), n, name)
		require.NoError(t, power.SetFrontier(s, 12), name)
		queued, err := power.QueuedFrees(s)
		require.NoError(t, err, name)
		require.Equal(t, 12, queued, name)
		meta, err := power.MetadataBytes(s)
		require.NoError(t, err, name)
		require.Equal(t, device.Size(99), meta, name)
		why, ok := power.LastRefusal(s)
		require.True(t, ok, name)
		require.Equal(t, device.Size(3), why.Free, name)
		require.Equal(t, device.Size(256), power.MaxRequest(s), name)
		require.NoError(t, power.ClearStats(s), name)
		text, err := power.AppendReport(s, []byte("a "), alloc.Request{})
		require.NoError(t, err, name)
		require.Equal(t, "a report", string(text), name)
		free := 0
		power.WalkFree(s, func(alloc.Chunk) bool { free++; return true })
		require.Equal(t, 1, free, name)
		require.NoError(t, s.Check(), name)
	}
}

func TestPowersOfPyTorchPassThroughEveryWrapper(t *testing.T) {
	r := &rich{toy: newToy(4)}
	for name, s := range wrapped(t, r) {
		r.pools = nil
		require.NoError(t, power.BeginPool(s, 3, 7), name)
		require.NoError(t, power.BeginMemPool(s, 4, 8, power.PoolOptions{NoSplit: true}), name)
		require.NoError(t, power.EndPool(s, 3), name)
		require.ErrorIs(t, power.ReleasePool(s, 4), alloc.ErrInvalidPool, name)
		require.ErrorIs(t, power.Configure(s, "a:1"), alloc.ErrInvalidSettings, name)
		require.Equal(t, []string{"begin 3 on 7", "begin 4 on 8 {false true}", "end 3", "release 4", "configure a:1"},
			r.pools, name)
		var counters []string
		require.NoError(t, power.Counters(s, func(counter string, n int64) bool {
			counters = append(counters, fmt.Sprint(counter, n))
			return true
		}), name)
		require.Equal(t, []string{"num_ooms6"}, counters, name)
		var told []power.Action
		require.NoError(t, power.SetHistory(s, func(a power.Action) { told = append(told, a) }), name)
		r.tell(power.Action{Kind: power.SegmentMap, Size: 9})
		require.Equal(t, []power.Action{{Kind: power.SegmentMap, Size: 9}}, told, name)
		require.NoError(t, power.SetHistory(s, nil), name)
		require.Nil(t, r.tell, name)
	}
}

// TestForecastsAndMarksPassThroughEveryWrapper passes a forecast and marks to a strategy.
func TestForecastsAndMarksPassThroughEveryWrapper(t *testing.T) {
	r := &rich{toy: newToy(4)}
	f := []power.Expected{{Request: alloc.Request{Size: 5}, Other: 1}, {Kind: power.ExpectFree}}
	for name, s := range wrapped(t, r) {
		r.plan, r.marks = nil, nil
		require.NoError(t, power.Plan(s, slices.Values(f)), name)
		require.Equal(t, f, r.plan, name)
		require.NoError(t, power.Mark(s, "step 1"), name)
		require.Equal(t, []string{"step 1"}, r.marks, name)
	}
}

func TestMissingPowersAreUnsupportedThroughEveryWrapper(t *testing.T) {
	for name, s := range wrapped(t, newToy(4)) {
		for p := range power.Powers {
			switch {
			case p == power.PowerConcurrent || p == power.PowerWaiter:
			case p == power.PowerFailure && name != "bare": // Limited records its own refusals
			default:
				require.False(t, power.Has(s, p), "%s: %v", name, p)
			}
		}
		_, err := power.Trim(s)
		require.ErrorIs(t, err, alloc.ErrUnsupported, name)
		require.ErrorIs(t, power.SetFrontier(s, 1), alloc.ErrUnsupported, name)
		_, err = power.QueuedFrees(s)
		require.ErrorIs(t, err, alloc.ErrUnsupported, name)
		_, err = power.MetadataBytes(s)
		require.ErrorIs(t, err, alloc.ErrUnsupported, name)
		require.ErrorIs(t, power.ClearStats(s), alloc.ErrUnsupported, name)
		_, err = power.AppendReport(s, nil, alloc.Request{})
		require.ErrorIs(t, err, alloc.ErrUnsupported, name)
		_, ok := power.LastRefusal(s)
		require.False(t, ok, name)
		require.ErrorIs(t, power.BeginPool(s, 1, power.AllStreams), alloc.ErrUnsupported, name)
		require.ErrorIs(t, power.BeginMemPool(s, 1, 0, power.PoolOptions{}), alloc.ErrUnsupported, name)
		require.ErrorIs(t, power.EndPool(s, 1), alloc.ErrUnsupported, name)
		require.ErrorIs(t, power.ReleasePool(s, 1), alloc.ErrUnsupported, name)
		require.ErrorIs(t, power.Configure(s, ""), alloc.ErrUnsupported, name)
		require.ErrorIs(t, power.Counters(s, nil), alloc.ErrUnsupported, name)
		require.ErrorIs(t, power.SetHistory(s, nil), alloc.ErrUnsupported, name)
		require.ErrorIs(t, power.Plan(s, nil), alloc.ErrUnsupported, name)
		require.ErrorIs(t, power.Mark(s, ""), alloc.ErrUnsupported, name)
	}
}

// TestPowersHoldTheLocksOfWrappers puts two wrappers with locks around a strategy, and one between
// them that replaces a power. Each lock must be held exactly while the methods behind it run.
func TestPowersHoldTheLocksOfWrappers(t *testing.T) {
	var outer, inner counted
	probe := &probing{rich: &rich{toy: newToy(4)}, held: func() string { return fmt.Sprint(outer.held, inner.held) }}
	below := wrap.Forward(probe, &inner)
	between := &trims{Forwarder: wrap.Forward(&below, nil), held: probe.held}
	s := wrap.Forward(between, &outer)
	_, err := power.MetadataBytes(&s)
	require.NoError(t, err)
	require.Equal(t, "true true", probe.seen)
	_, err = power.Trim(&s)
	require.NoError(t, err)
	require.Equal(t, "true false", between.seen, "the wrapper's own method")
	require.Equal(t, 2, outer.taken)
	require.Equal(t, 1, inner.taken)
	require.False(t, power.Implements(&s, 200))
}

// counted is a lock that counts.
type counted struct {
	held  bool
	taken int
}

func (c *counted) Lock()   { c.held, c.taken = true, c.taken+1 }
func (c *counted) Unlock() { c.held = false }

// probing records the locks that are held while MetadataBytes runs.
type probing struct {
	*rich
	held func() string
	seen string
}

func (p *probing) MetadataBytes() device.Size {
	p.seen = p.held()
	return 1
}

// trims is a wrapper with its own Trim.
type trims struct {
	wrap.Forwarder
	held func() string
	seen string
}

func (r *trims) Trim() (device.Size, error) {
	r.seen = r.held()
	return 0, nil
}

func TestFallbacksWalk(t *testing.T) {
	s := newToy(3)
	_, err := s.Alloc(alloc.Request{Size: 1})
	require.NoError(t, err)
	require.Equal(t, device.Size(256), power.LargestFree(s))
	var at []device.Addr
	power.WalkFree(s, func(c alloc.Chunk) bool {
		at = append(at, c.Addr)
		return true
	})
	require.Equal(t, []device.Addr{toyBase + 256, toyBase + 512}, at)
	require.Equal(t, ^device.Size(0), power.MaxRequest(s))
	require.Equal(t, 2, s.walks)
}

func TestNames(t *testing.T) {
	for p := range power.Powers {
		require.NotEmpty(t, p.String())
		require.NotEqual(t, "invalid", p.String())
	}
	require.Equal(t, "invalid", power.Power(200).String())
	require.Equal(t, "slack", alloc.Slack.String())
	require.Equal(t, "invalid", alloc.State(200).String())
	require.Equal(t, "segment_unmap", power.SegmentUnmap.String())
	require.Equal(t, "oom", power.OutOfMemory.String())
	require.Equal(t, "invalid", power.ActionKind(200).String())
	require.Equal(t, "device refused", power.ReasonDevice.String())
	require.Equal(t, "invalid", power.Reason(200).String())
}

// named is a toy whose references are the numbers of its cells from 1.
type named struct {
	*toy
	freed []alloc.Block
}

func (n *named) Alloc(r alloc.Request) (alloc.Block, error) {
	b, err := n.toy.Alloc(r)
	b.Ref = uint32((b.Addr-toyBase)/256) + 1
	return b, err
}

func (n *named) FreeRef(b alloc.Block) error {
	n.freed = append(n.freed, b)
	return n.Free(b.Addr)
}

func TestReferencesPassThroughEveryWrapper(t *testing.T) {
	n := &named{toy: newToy(4)}
	for name, s := range wrapped(t, n) {
		n.freed = nil
		b, err := s.Alloc(alloc.Request{Size: 10})
		require.NoError(t, err, name)
		require.EqualValues(t, 1, b.Ref, name)
		require.True(t, power.Has(s, power.PowerReferenced), name)
		require.NoError(t, power.FreeRef(s, b), name)
		require.Equal(t, []alloc.Block{b}, n.freed, name)
	}
}

// TestFreeRefCallsAWrapperThatChangesOnlyFree has a wrapper that changes Free alone.
func TestFreeRefCallsAWrapperThatChangesOnlyFree(t *testing.T) {
	n := &named{toy: newToy(4)}
	s := &counts{Forwarder: wrap.Forward(n, nil)}
	b, err := s.Alloc(alloc.Request{Size: 10})
	require.NoError(t, err)
	require.False(t, power.Has(s, power.PowerReferenced))
	require.NoError(t, power.FreeRef(s, b))
	require.Equal(t, 1, s.frees)
	require.Empty(t, n.freed)
}

// counts is a wrapper that counts frees.
type counts struct {
	wrap.Forwarder
	frees int
}

func (c *counts) Free(a device.Addr) error {
	c.frees++
	return c.Forwarder.Free(a)
}

// located is a toy that finds blocks itself and counts the queries.
type located struct {
	*toy
	queries int
}

func (l *located) BlockAt(a device.Addr) (alloc.Chunk, error) {
	l.queries++
	return power.BlockAt(l.toy, a)
}

// TestBlockAtPassesThroughEveryWrapper compares the result of the power with the walk, inside each
// wrapper.
func TestBlockAtPassesThroughEveryWrapper(t *testing.T) {
	l := &located{toy: newToy(4)}
	for name, s := range wrapped(t, l) {
		l.queries = 0
		b, err := s.Alloc(alloc.Request{Size: 10})
		require.NoError(t, err, name)
		c, err := power.BlockAt(s, b.Addr)
		require.NoError(t, err, name)
		require.Equal(t, 1, l.queries, name)
		require.Equal(t, []device.Size{10, b.Size}, []device.Size{c.Requested, c.Size}, name)
		_, err = power.BlockAt(s, b.Addr+1)
		require.ErrorIs(t, err, alloc.ErrInvalidFree, name)
		require.NoError(t, s.Free(b.Addr), name)
	}
}

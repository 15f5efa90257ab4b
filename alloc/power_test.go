package alloc_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// wrapped returns s bare and behind every wrapper.
func wrapped(t *testing.T, s alloc.Strategy) map[string]alloc.Strategy {
	t.Helper()
	limited, err := alloc.Limited(s, 1<<40)
	require.NoError(t, err)
	recorded, err := alloc.Recorded(limited, func(alloc.Operation) {})
	require.NoError(t, err)
	locked, err := alloc.Locked(recorded)
	require.NoError(t, err)
	retrying, err := alloc.Retrying(locked, 0)
	require.NoError(t, err)
	return map[string]alloc.Strategy{"bare": s, "limited": limited, "recorded": recorded, "locked": locked,
		"retrying": retrying}
}

func TestPowersPassThroughEveryWrapper(t *testing.T) {
	for name, s := range wrapped(t, &rich{toy: newToy(4)}) {
		require.Equal(t, device.Size(77), alloc.LargestFree(s), name)
		n, err := alloc.Trim(s)
		require.NoError(t, err, name)
		require.Equal(t, device.Size(5), n, name)
		require.NoError(t, alloc.SetFrontier(s, 12), name)
		queued, err := alloc.QueuedFrees(s)
		require.NoError(t, err, name)
		require.Equal(t, 12, queued, name)
		meta, err := alloc.MetadataBytes(s)
		require.NoError(t, err, name)
		require.Equal(t, device.Size(99), meta, name)
		why, ok := alloc.LastRefusal(s)
		require.True(t, ok, name)
		require.Equal(t, device.Size(3), why.Free, name)
		require.Equal(t, device.Size(256), alloc.MaxRequest(s), name)
		require.NoError(t, alloc.ClearStats(s), name)
		text, err := alloc.AppendReport(s, []byte("a "), alloc.Request{})
		require.NoError(t, err, name)
		require.Equal(t, "a report", string(text), name)
		free := 0
		alloc.WalkFree(s, func(alloc.Chunk) bool { free++; return true })
		require.Equal(t, 1, free, name)
		require.NoError(t, s.Check(), name)
	}
}

func TestPowersOfPyTorchPassThroughEveryWrapper(t *testing.T) {
	r := &rich{toy: newToy(4)}
	for name, s := range wrapped(t, r) {
		r.pools = nil
		require.NoError(t, alloc.BeginPool(s, 3, 7), name)
		require.NoError(t, alloc.EndPool(s, 3), name)
		require.ErrorIs(t, alloc.ReleasePool(s, 4), alloc.ErrInvalidPool, name)
		require.Equal(t, []string{"begin 3 on 7", "end 3", "release 4"}, r.pools, name)
		var counters []string
		require.NoError(t, alloc.Counters(s, func(counter string, n int64) bool {
			counters = append(counters, fmt.Sprint(counter, n))
			return true
		}), name)
		require.Equal(t, []string{"num_ooms6"}, counters, name)
		var told []alloc.Action
		require.NoError(t, alloc.SetHistory(s, func(a alloc.Action) { told = append(told, a) }), name)
		r.tell(alloc.Action{Kind: alloc.SegmentMap, Size: 9})
		require.Equal(t, []alloc.Action{{Kind: alloc.SegmentMap, Size: 9}}, told, name)
		require.NoError(t, alloc.SetHistory(s, nil), name)
		require.Nil(t, r.tell, name)
	}
}

func TestMissingPowersAreUnsupportedThroughEveryWrapper(t *testing.T) {
	for name, s := range wrapped(t, newToy(4)) {
		for p := range alloc.Powers {
			switch {
			case p == alloc.PowerConcurrent || p == alloc.PowerWaiter:
			case p == alloc.PowerFailure && name != "bare": // Limited knows why it refused
			default:
				require.False(t, alloc.Has(s, p), "%s: %v", name, p)
			}
		}
		_, err := alloc.Trim(s)
		require.ErrorIs(t, err, alloc.ErrUnsupported, name)
		require.ErrorIs(t, alloc.SetFrontier(s, 1), alloc.ErrUnsupported, name)
		_, err = alloc.QueuedFrees(s)
		require.ErrorIs(t, err, alloc.ErrUnsupported, name)
		_, err = alloc.MetadataBytes(s)
		require.ErrorIs(t, err, alloc.ErrUnsupported, name)
		require.ErrorIs(t, alloc.ClearStats(s), alloc.ErrUnsupported, name)
		_, err = alloc.AppendReport(s, nil, alloc.Request{})
		require.ErrorIs(t, err, alloc.ErrUnsupported, name)
		_, ok := alloc.LastRefusal(s)
		require.False(t, ok, name)
		require.ErrorIs(t, alloc.BeginPool(s, 1, alloc.AllStreams), alloc.ErrUnsupported, name)
		require.ErrorIs(t, alloc.EndPool(s, 1), alloc.ErrUnsupported, name)
		require.ErrorIs(t, alloc.ReleasePool(s, 1), alloc.ErrUnsupported, name)
		require.ErrorIs(t, alloc.Counters(s, nil), alloc.ErrUnsupported, name)
		require.ErrorIs(t, alloc.SetHistory(s, nil), alloc.ErrUnsupported, name)
	}
}

// TestForwarderHasEveryPower keeps the forwarder complete. Markers have no methods to pass on.
func TestForwarderHasEveryPower(t *testing.T) {
	f := alloc.Forward(newToy(1), nil)
	for p := range alloc.Powers {
		marker := p == alloc.PowerConcurrent || p == alloc.PowerWaiter
		require.Equal(t, !marker, alloc.Implements(&f, p), p)
	}
	require.False(t, alloc.Implements(&f, 200))
}

func TestFallbacksWalk(t *testing.T) {
	s := newToy(3)
	_, err := s.Alloc(alloc.Request{Size: 1})
	require.NoError(t, err)
	require.Equal(t, device.Size(256), alloc.LargestFree(s))
	var at []device.Addr
	alloc.WalkFree(s, func(c alloc.Chunk) bool {
		at = append(at, c.Addr)
		return true
	})
	require.Equal(t, []device.Addr{toyBase + 256, toyBase + 512}, at)
	require.Equal(t, ^device.Size(0), alloc.MaxRequest(s))
	require.Equal(t, 2, s.walks)
}

func TestNames(t *testing.T) {
	for p := range alloc.Powers {
		require.NotEmpty(t, p.String())
		require.NotEqual(t, "invalid", p.String())
	}
	require.Equal(t, "invalid", alloc.Power(200).String())
	require.Equal(t, "slack", alloc.Slack.String())
	require.Equal(t, "invalid", alloc.State(200).String())
	require.Equal(t, "segment_unmap", alloc.SegmentUnmap.String())
	require.Equal(t, "oom", alloc.OutOfMemory.String())
	require.Equal(t, "invalid", alloc.ActionKind(200).String())
	require.Equal(t, "device refused", alloc.ReasonDevice.String())
	require.Equal(t, "invalid", alloc.Reason(200).String())
}

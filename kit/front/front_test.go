package front_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/regions"
)

// open returns the front of a strategy with 300 free bytes in chunks of up to 100.
func open(l front.Limits) (*front.Front, front.View) {
	f := new(front.Front)
	return f, f.Init(l, func() (largest, bytes device.Size) { return 100, 300 })
}

func TestRequestsAreJudgedByTheLimits(t *testing.T) {
	const most = 4096
	for _, c := range []struct {
		limits front.Limits
		r      alloc.Request
		want   power.Reason
	}{
		{front.Limits{Most: most}, alloc.Request{Size: 1}, power.ReasonNone},
		{front.Limits{Most: most}, alloc.Request{Size: most, Align: 1 << 63}, power.ReasonNone},
		{front.Limits{Most: most}, alloc.Request{}, power.ReasonZero},
		{front.Limits{Most: most}, alloc.Request{Size: most + 1}, power.ReasonTooLarge},
		{front.Limits{Most: most}, alloc.Request{Size: math.MaxUint64, Align: 3}, power.ReasonTooLarge},
		{front.Limits{Most: most, Above: power.ReasonOverflow}, alloc.Request{Size: most + 1}, power.ReasonOverflow},
		{front.Limits{Most: most}, alloc.Request{Size: 1, Align: 3}, power.ReasonAlignment},
		{front.Limits{Most: most, Align: 512}, alloc.Request{Size: 1, Align: 512}, power.ReasonNone},
		{front.Limits{Most: most, Align: 512}, alloc.Request{Size: 1, Align: 1024}, power.ReasonAlignment},
	} {
		f, v := open(c.limits)
		require.EqualValues(t, most, v.MaxRequest())
		require.Equal(t, c.want == power.ReasonNone, f.Accepts(&c.r), "%+v", c.r)
		if c.want == power.ReasonNone {
			continue
		}
		require.ErrorIs(t, f.Refuse(&c.r), alloc.ErrInvalidRequest)
		why, ok := v.LastRefusal()
		require.True(t, ok)
		require.Equal(t, power.Refusal{Reason: c.want, Request: c.r, LargestHole: 100, Free: 300}, why)
		require.Zero(t, v.Stats(), "a mistake of the caller is no shortage")
	}
}

func TestOutOfMemoryIsRecorded(t *testing.T) {
	r := alloc.Request{Size: 1000, Tag: 7}
	for err, want := range map[error]power.Refusal{
		regions.ErrLimit:      {Reason: power.ReasonLimit},
		device.ErrOutOfMemory: {Reason: power.ReasonDevice, Asked: 2048, Device: device.ErrOutOfMemory},
	} {
		f, v := open(front.Limits{Most: 4096})
		_, ok := v.LastRefusal()
		require.False(t, ok)
		require.Equal(t, alloc.ErrOutOfMemory, f.OutOfMemory(&r, 1024, 2048, err))
		want.Request, want.Rounded, want.LargestHole, want.Free = r, 1024, 100, 300
		why, ok := v.LastRefusal()
		require.True(t, ok)
		require.Equal(t, want, why)
		require.Equal(t, alloc.Stats{OOMs: 1}, v.Stats())
		v.ClearStats()
		require.Zero(t, v.Stats())
	}
}

func TestFreeOfNullIsIgnoredWhereLimitsPermitIt(t *testing.T) {
	f, _ := open(front.Limits{Most: 4096})
	require.Equal(t, alloc.ErrInvalidFree, f.NothingFreed(0))
	ignoring, v := open(front.Limits{Most: 4096, Null: true})
	require.NoError(t, ignoring.NothingFreed(0))
	require.Equal(t, alloc.ErrInvalidFree, ignoring.NothingFreed(1))
	require.Zero(t, v.Stats())
	ignoring.Close()
	require.Equal(t, alloc.ErrClosed, ignoring.NothingFreed(0))
}

func TestClosedFrontRefusesEverything(t *testing.T) {
	f, v := open(front.Limits{Most: 4096})
	require.Equal(t, alloc.ErrInvalidFree, f.NoBlock())
	f.Stats.Granted(100, 256)
	f.Stop()
	require.Equal(t, 1, v.Stats().Live)
	f.Close()
	require.True(t, f.Closed())
	require.Zero(t, v.Stats().Live)
	require.Equal(t, alloc.ErrClosed, f.NoBlock())
	for _, r := range []alloc.Request{{}, {Size: 1}, {Size: math.MaxUint64}} {
		require.False(t, f.Accepts(&r))
		require.Equal(t, alloc.ErrClosed, f.Refuse(&r))
	}
	_, ok := v.LastRefusal()
	require.False(t, ok, "a call after Close is no refusal")
	require.EqualValues(t, 4096, v.MaxRequest())
}

func TestRefusalsAllocateNothing(t *testing.T) {
	f, _ := open(front.Limits{Most: 4096})
	r := alloc.Request{Size: 1000}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_ = f.Refuse(&r)
		_ = f.OutOfMemory(&r, 1024, 2048, device.ErrOutOfMemory)
	}))
}

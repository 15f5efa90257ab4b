package alloc_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
)

// TestOriginKeepsSiteAndThread packs both parts and reads them back.
func TestOriginKeepsSiteAndThread(t *testing.T) {
	o := alloc.OriginOf(0xabcdef, 7)
	require.EqualValues(t, 0xabcdef, o.Site())
	require.EqualValues(t, 7, o.Thread())

	o = alloc.OriginOf(1<<63|1<<19|5, 1<<31) // bit 63 is folded onto bit 19
	require.EqualValues(t, 5, o.Site())
	require.EqualValues(t, 1<<18-1, o.Thread(), "the last number stands for all above")

	require.NotZero(t, alloc.OriginOf(1<<44|1, 0).Site(), "a site that is known stays known")
	require.Zero(t, alloc.OriginOf(0, 0))
}

// TestOriginKeepsLifetime sets each lifetime, one after the other, beside the greatest site and
// thread.
func TestOriginKeepsLifetime(t *testing.T) {
	o := alloc.OriginOf(1<<44-1, 1<<18-1)
	require.Equal(t, alloc.LifeUnknown, o.Lifetime())
	for _, l := range []alloc.Lifetime{alloc.LifeRun, alloc.LifeMark, alloc.LifeStep, alloc.LifeUnknown} {
		o = o.WithLifetime(l)
		require.Equal(t, l, o.Lifetime())
		require.EqualValues(t, 1<<44-1, o.Site())
		require.EqualValues(t, 1<<18-1, o.Thread())
	}
	require.Equal(t, "step", alloc.LifeStep.String())
	require.Equal(t, "invalid", alloc.Lifetime(4).String())
}

// TestRequestFitsRegisters holds the request to the eight words that a call passes in registers
// beside its receiver on amd64: with a ninth each call would go through memory.
func TestRequestFitsRegisters(t *testing.T) {
	require.LessOrEqual(t, reflect.TypeFor[alloc.Request]().NumField(), 8)
}

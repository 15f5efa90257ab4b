package bfc

import (
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
)

func TestRoundUpGoesToTheNextUnit(t *testing.T) {
	for n, want := range map[device.Size]device.Size{
		0: 0, 1: 256, 255: 256, 256: 256, 257: 512, 512: 512, 513: 768,
		1<<40 - 1: 1 << 40, maxRequest - 1: maxRequest, maxRequest: maxRequest,
	} {
		require.Equal(t, want, roundUp(n), "roundUp(%d)", n)
	}
}

func TestBinsDoubleAndTheLastIsOpen(t *testing.T) {
	require.Equal(t, int32(0), binOf(1))
	for b := range int32(numBins - 1) {
		start := binSize(b)
		require.Equal(t, b, binOf(start), "start of bin %d", b)
		require.Equal(t, b, binOf(start+255), "first unit of bin %d", b)
		require.Equal(t, b, binOf(2*start-1), "end of bin %d", b)
		require.Equal(t, b+1, binOf(2*start), "start of the bin after %d", b)
	}
	require.Equal(t, 256*device.MiB, binSize(numBins-1))
	require.Equal(t, int32(numBins-1), binOf(device.TiB))
	require.Equal(t, int32(numBins-1), binOf(maxRequest))
}

func TestBackpedalRoundsAsFloat32(t *testing.T) {
	for _, c := range []struct{ from, to device.Size }{
		{1 << 20, 943872},
		{402654464, 362388992}, // exact arithmetic gives 362389248
		{16 * device.GiB, 15461881856},
		{2560, 2304},
		{2304, 2048}, // 2073.6 rounds back up to 2304: one unit less instead
		{2048, 1792},
		{512, 256},
		{256, 0},
	} {
		require.Equal(t, c.to, backpedal(c.from), "from %d", c.from)
	}
}

func TestBackpedalAgreesWithExactArithmeticUpTo384MiB(t *testing.T) {
	for n := device.Size(2560); n <= 384*device.MiB; n += 256 * 977 {
		require.Equal(t, roundUp(n*9/10), backpedal(n), "from %d", n)
	}
}

func TestBackpedalAlwaysShrinks(t *testing.T) {
	for n := maxRequest; n > 0; {
		next := backpedal(n)
		require.Less(t, next, n)
		require.Zero(t, next%unit)
		n = next
	}
}

func TestDoublingStopsAtTheTop(t *testing.T) {
	require.Equal(t, 2*device.GiB, doubled(device.GiB))
	require.Equal(t, maxRequest, doubled(1<<63))
	require.Equal(t, maxRequest, doubled(maxRequest))
	require.Equal(t, device.Size(1<<63), doubled(1<<62))
}

func TestWasteLimitTruncatesTheUnroundedLimit(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   device.Size
	}{
		{Config{Limit: 10495}, 128 * device.MiB},
		{Config{Limit: 10495, FragmentationFraction: -1}, 128 * device.MiB},
		{Config{Limit: 10495, FragmentationFraction: 0.4}, 4198},
		{Config{Limit: 1000, FragmentationFraction: 1e-9}, 0},
		{Config{Limit: 1000, Variant: V2016}, math.MaxUint64},
	} {
		require.Equal(t, c.want, wasteLimit(c.config), "%+v", c.config)
	}
}

func TestFirstRegionIsRoundedAfterClipping(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   device.Size
	}{
		{Config{Limit: 700}, 768},
		{Config{Limit: 700, AllowGrowth: true}, 768},
		{Config{Limit: device.GiB}, device.GiB},
		{Config{Limit: device.GiB, AllowGrowth: true}, 2 * device.MiB},
		{Config{Limit: device.GiB, AllowGrowth: true, Variant: V2016}, device.MiB},
		{Config{Limit: math.MaxUint64}, maxRequest},
	} {
		require.Equal(t, c.want, firstRegion(c.config), "%+v", c.config)
	}
}

func TestRecordBytesAreThoseOfTheTypes(t *testing.T) {
	require.EqualValues(t, 32, reflect.TypeFor[chunk]().Size())
	require.EqualValues(t, 16, reflect.TypeFor[label]().Size())
	require.EqualValues(t, 24, reflect.TypeFor[entry]().Size())
	require.EqualValues(t, 16, reflect.TypeFor[mark]().Size())
	require.EqualValues(t, 64, reflect.TypeFor[region]().Size())
}

func TestTagKeepsItsParts(t *testing.T) {
	g := makeTag(live, OwnerUpper, 1<<28-1)
	require.Equal(t, live, g.state())
	require.Equal(t, OwnerUpper, g.owner())
	require.Equal(t, uint32(1<<28-1), g.region())
	g = g.withState(free).withOwner(OwnerLower)
	require.Equal(t, free, g.state())
	require.Equal(t, OwnerLower, g.owner())
	require.Equal(t, uint32(1<<28-1), g.region())
}

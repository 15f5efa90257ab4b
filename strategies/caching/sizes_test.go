package caching

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
)

// of returns the settings that a string means in 2.11.
func of(t *testing.T, conf string) *settings {
	t.Helper()
	s, err := Config{Conf: conf, Rules: Rules211}.settings()
	require.NoError(t, err)
	return &s
}

func TestRoundGoesToTheNextQuantum(t *testing.T) {
	for _, conf := range []string{"", "roundup_power2_divisions:1", "roundup_power2_divisions:[]"} {
		s := of(t, conf)
		for n, want := range map[device.Size]device.Size{
			1: 512, 511: 512, 512: 512, 513: 1024, 1024: 1024, device.MiB: device.MiB, device.MiB + 1: device.MiB + 512,
			10*device.MiB - 1: 10 * device.MiB, mostRequest: 1 << 60,
		} {
			require.Equal(t, want, s.round(n), "%d with %q", n, conf)
		}
	}
}

func TestRoundGoesToTheNextStep(t *testing.T) {
	for conf, sizes := range map[string]map[device.Size]device.Size{
		"4": { // the sizes of the original's vector
			1: 512, 2048: 2048, 2049: 2560, 2560: 2560, 2561: 3072, 1200000: 1310720, 5000000: 5242880, 8388609: 10485760,
			100000000: 100663296,
		},
		"8":  {4096: 4096, 4097: 4608, 5000: 5120, 8192: 8192, 8193: 9216, 9217: 10240},
		"2":  {1024: 1024, 1025: 1536, 1537: 2048, 3 * device.MiB: 3 * device.MiB, 3*device.MiB + 1: 4 * device.MiB},
		"16": {8192: 8192, 8193: 8704, 8704: 8704, 8705: 9216, mostRequest: 1 << 60},
		// Sizes between 64 MiB and 128 MiB alone have steps.
		"[8:0,64:4,>:0]": {
			64*device.MiB - 1: 64 * device.MiB, 64 * device.MiB: 64 * device.MiB, 64*device.MiB + 1: 80 * device.MiB,
			112*device.MiB + 1: 128 * device.MiB, 128*device.MiB + 1: 128*device.MiB + 512,
		},
		// So many steps that 512 times their number wraps: the original goes to the next power of two.
		"9223372036854775808": {512: 512, 513: 1024, 1000: 1024, 3 * device.MiB: 4 * device.MiB},
	} {
		s := of(t, "roundup_power2_divisions:"+conf)
		for n, want := range sizes {
			require.Equal(t, want, s.round(n), "%d with %s", n, conf)
		}
	}
}

func TestRoundNeitherShrinksNorSwapsNorMovesTwice(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	for range 2000 {
		s := of(t, fmt.Sprintf("roundup_power2_divisions:[%d:%d,%d:%d,>:%d]",
			1<<rng.IntN(8), 1<<rng.IntN(8), 256<<rng.IntN(8), rng.IntN(2), 1<<rng.IntN(12)))
		n := device.Size(1) + device.Size(rng.Uint64N(1<<(1+rng.IntN(60))-1))
		r := s.round(n)
		require.GreaterOrEqual(t, r, n)
		require.Zero(t, r%quantum, "%d", n)
		require.Equal(t, r, s.round(r), "%d", n)
		require.LessOrEqual(t, r, 2*max(n, quantum))
		require.Equal(t, r, s.sizeFor(n), "%d", n)
		if n > 1 {
			require.LessOrEqual(t, s.round(n-1), r, "%d", n)
		}
	}
}

func TestSegmentsHaveThreeSizes(t *testing.T) {
	const mib = device.MiB
	for conf, sizes := range map[string]map[device.Size]device.Size{
		"": {
			512: 2 * mib, mib: 2 * mib, mib + 512: 20 * mib, 10*mib - 512: 20 * mib, 10 * mib: 10 * mib,
			10*mib + 512: 12 * mib, 20 * mib: 20 * mib, 1 << 60: 1 << 60,
		},
		// A request of 10 MiB still gets a segment of its own size, which may be smaller than the others.
		"large_segment_size_mb:64": {mib: 2 * mib, mib + 512: 64 * mib, 10*mib - 512: 64 * mib, 10 * mib: 10 * mib,
			63 * mib: 64 * mib},
	} {
		s := of(t, conf)
		for n, want := range sizes {
			require.Equal(t, want, s.segmentSize(n), "%d with %q", n, conf)
			require.Equal(t, want == 2*mib, isSmall(n))
		}
	}
}

func TestRoundAllocatesNothing(t *testing.T) {
	s := of(t, "roundup_power2_divisions:8")
	require.Zero(t, testing.AllocsPerRun(10, func() { s.round(5000) }))
}

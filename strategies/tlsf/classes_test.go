package tlsf

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
)

// sizesUpTo yields sizes around which classes begin, one quantum to either side, up to 2^61.
func sizesUpTo(s scale, yield func(device.Size)) {
	q := device.Size(1) << s.quantum
	for k := int(s.quantum); k <= 61; k++ {
		for part := range device.Size(1) << s.second {
			at := device.AlignDown(device.Size(1)<<k+part<<k>>s.second, q)
			for _, n := range []device.Size{at - q, at, at + q} {
				if n >= q && n <= 1<<61 {
					yield(n)
				}
			}
		}
	}
}

// scales are a few that differ in both parts.
var scales = []scale{{8, 5}, {0, 2}, {12, 6}, {8, 1}, {9, 3}}

func TestClassesAscendWithoutGap(t *testing.T) {
	for _, s := range scales {
		q := device.Size(1) << s.quantum
		for u := device.Size(1); u < 10_000; u++ {
			step := s.class((u+1)*q) - s.class(u*q)
			require.LessOrEqual(t, step, uint32(1), "%+v at %d quanta", s, u)
		}
		sizesUpTo(s, func(n device.Size) {
			require.LessOrEqual(t, s.class(n+q)-s.class(n), uint32(1), "%+v at %d", s, n)
			require.Less(t, s.class(n)>>s.second, uint32(64), "a word has a bit for each first level")
		})
		require.Less(t, s.class(s.bound(1<<63+1<<60))>>s.second, uint32(64), "%+v", s)
	}
}

func TestBoundIsWhereTheNextClassBegins(t *testing.T) {
	for _, s := range scales {
		q := device.Size(1) << s.quantum
		sizesUpTo(s, func(n device.Size) {
			b := s.bound(n)
			require.GreaterOrEqual(t, b, n)
			require.LessOrEqual(t, b-n, n>>s.second, "%+v at %d", s, n)
			require.Equal(t, b, s.bound(b), "a bound is its own")
			require.Equal(t, s.class(b), s.sure(n))
			if b > q {
				require.Less(t, s.class(b-q), s.class(b), "%+v: what is below the bound %d is of a lower class", s, b)
			}
			require.Equal(t, n == b, s.class(n) == s.class(b), "%+v at %d", s, n)
		})
	}
}

func TestFirstClassesAreSingleSizes(t *testing.T) {
	s := scale{8, 5}
	for u := device.Size(1); u < 64; u++ {
		require.EqualValues(t, u, s.class(u*256))
		require.Equal(t, u*256, s.bound(u*256))
	}
	require.Equal(t, s.class(64*256), s.class(65*256))
	require.Equal(t, device.Size(66*256), s.bound(65*256))
}

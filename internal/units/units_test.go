package units_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/units"
)

func TestBytes(t *testing.T) {
	for want, n := range map[string]device.Size{
		"0 B": 0, "1023 B": 1023, "1.00 KiB": 1024, "1.50 MiB": 3 << 19, "1023.99 GiB": 1<<40 - 1<<23, "16.00 EiB": 1<<64 - 1,
	} {
		require.Equal(t, want, units.Bytes(n))
	}
}

func TestNumbers(t *testing.T) {
	require.Equal(t, "999 ns", units.Nanoseconds(999))
	require.Equal(t, "1.00 µs", units.Nanoseconds(1000))
	require.Equal(t, "2.50 s", units.Nanoseconds(2_500_000_000))
	require.Equal(t, "12.5 %", units.Percent(0.125))
	require.Equal(t, "1,234,567", units.Count(1_234_567))
	require.Equal(t, "999", units.Count(999))
	require.Equal(t, "0 blocks", units.Several(0, "block"))
	require.Equal(t, "1 block", units.Several(1, "block"))
	require.Equal(t, `"\x1b[2J"`, units.Printable("\x1b[2J"))
}

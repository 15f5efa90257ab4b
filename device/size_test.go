package device_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]device.Size{
		"0":                    0,
		"256":                  256,
		"256B":                 256,
		"512KiB":               512 << 10,
		"2MiB":                 2 << 20,
		"2mib":                 2 << 20,
		"2M":                   2 << 20,
		"80 GiB":               80 << 30,
		"1.5GiB":               3 << 29,
		"15EiB":                15 << 60,
		"18446744073709551615": 1<<64 - 1,
	} {
		got, err := device.ParseSize(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestParseSizeRefuses(t *testing.T) {
	for _, text := range []string{
		"", " ", "-1", "+1", "-5MiB", "MiB", "1.5", "1.GiB", ".5GiB", "1e3", "0x10", "16EiB",
		"18446744073709551616", "2MB", "2 Mi B", "NaN", "Inf", "1.-5GiB", "1.5.5GiB",
	} {
		_, err := device.ParseSize(text)
		require.Error(t, err, text)
		require.Contains(t, err.Error(), text)
	}
}

func TestSizeText(t *testing.T) {
	for want, n := range map[string]device.Size{
		"0B": 0, "255B": 255, "1KiB": 1024, "1.50KiB": 1536, "2MiB": 2 << 20, "1.37GiB": 1471026299,
	} {
		require.Equal(t, want, n.String())
	}
	require.Equal(t, "16.00EiB", (^device.Size(0)).String())
}

func TestSizeJSON(t *testing.T) {
	var v struct{ N device.Size }
	require.NoError(t, json.Unmarshal([]byte(`{"N": "2MiB"}`), &v))
	require.Equal(t, 2*device.MiB, v.N)
	out, err := json.Marshal(v)
	require.NoError(t, err)
	require.Equal(t, `{"N":2097152}`, string(out))
	for _, bad := range []string{`{"N":-1}`, `{"N":1.5}`, `{"N":"-1"}`, `{"N":true}`, `{"N":[1]}`, `{"N":1e99}`} {
		require.Error(t, json.Unmarshal([]byte(bad), &v), bad)
	}
}

// FuzzParseSize checks that what ParseSize accepts survives a round trip, up to the two
// decimals that the text form keeps.
func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"2MiB", "1.5GiB", "18446744073709551615", "-1", "7"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := device.ParseSize(s)
		if err != nil {
			return
		}
		again, err := device.ParseSize(n.String())
		if n > 1<<60 && err != nil {
			return // rounding to two decimals may go past the largest size
		}
		require.NoError(t, err)
		require.InEpsilon(t, float64(n)+1, float64(again)+1, 0.01)
	})
}

func TestAlign(t *testing.T) {
	for _, c := range []struct{ n, align, down, up device.Size }{
		{0, 256, 0, 0},
		{1, 256, 0, 256},
		{255, 256, 0, 256},
		{256, 256, 256, 256},
		{257, 256, 256, 512},
		{7, 1, 7, 7},
	} {
		require.Equal(t, c.down, device.AlignDown(c.n, c.align))
		require.Equal(t, c.up, device.AlignUp(c.n, c.align))
	}
	require.True(t, device.CanAlignUp(^device.Size(0)-255, device.Size(256)))
	require.False(t, device.CanAlignUp(^device.Size(0)-254, device.Size(256)))
	require.Equal(t, device.Size(0), device.AlignUp(^device.Size(0)-254, device.Size(256)))
	require.True(t, device.Addr(512).IsAligned(256))
	require.False(t, device.Addr(513).IsAligned(2))
	for n, want := range map[device.Size]bool{0: false, 1: true, 2: true, 3: false, 1 << 63: true, 1<<63 + 1: false} {
		require.Equal(t, want, device.IsPowerOfTwo(n), n)
	}
}

func TestParseSizeAsksForTheBinaryUnit(t *testing.T) {
	for text, want := range map[string]string{
		"24GB": "24GiB", "24 gb": "24GiB", "1.5TB": "1.5TiB", "512kb": "512KiB",
	} {
		_, err := device.ParseSize(text)
		require.EqualError(t, err, `size "`+text+`": units are powers of 1024: did you mean "`+want+`"?`)
	}
}

func TestParseCapacityRefusesNumbersWithoutTheirUnit(t *testing.T) {
	for text, want := range map[string]device.Size{
		"24GiB": 24 << 30, "512KiB": 512 << 10, "24B": 24, "1048576": 1 << 20, "0.5KiB": 512, "25769803776": 24 << 30,
	} {
		got, err := device.ParseCapacity(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, want := range map[string]string{
		"24":      `24 bytes are less than 1MiB: did you mean "24GiB", or "24B" for bytes?`,
		"80\n":    `80 bytes are less than 1MiB: did you mean "80GiB", or "80B" for bytes?`,
		"24576":   `24576 bytes are less than 1MiB: did you mean "24576MiB", or "24576B" for bytes?`,
		"1048575": `1048575 bytes are less than 1MiB: want a unit, such as "24GiB", or "1048575B" for bytes`,
		"0":       "want more than 0 bytes",
		"0GiB":    "want more than 0 bytes",
		"24GB":    `size "24GB": units are powers of 1024: did you mean "24GiB"?`,
	} {
		_, err := device.ParseCapacity(text)
		require.EqualError(t, err, want)
	}
}

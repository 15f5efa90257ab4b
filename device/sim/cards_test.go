package sim_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

func TestParseDevice(t *testing.T) {
	plain := newDevice(t, sim.Config{}).Config()
	got, err := sim.ParseDevice("sim")
	require.NoError(t, err)
	require.Equal(t, plain, got)

	got, err = sim.ParseDevice("sim:24GiB")
	require.NoError(t, err)
	plain.Capacity = 24 * device.GiB
	require.Equal(t, plain, got)

	for _, c := range sim.Cards() {
		got, err := sim.ParseDevice("sim:" + c.Name)
		require.NoError(t, err)
		require.Equal(t, newDevice(t, c.Config()).Config(), got)
		require.Equal(t, c.Memory, got.Capacity)
		require.Equal(t, 2*device.MiB, got.Charge)
	}
}

func TestParseDeviceRefuses(t *testing.T) {
	for spec, want := range map[string]string{
		"":                  `device "": there are simulated devices only: want sim, sim:SIZE such as sim:24GiB, or sim:CARD with one of b200-180g, `,
		"cuda:0":            `device "cuda:0": there are simulated devices only`,
		"h100-80g":          `device "h100-80g": there are simulated devices only`,
		"sim:":              `device "sim:": no such card: want sim, `,
		"sim:h100":          `device "sim:h100": no such card: did you mean "sim:h100-94g"? want sim, `,
		"sim:h100-80g:":     `no such card`,
		"sim:-4GiB":         `no such card`,
		"sim:0":             `device "sim:0": want more than 0 bytes`,
		"sim:24cows":        `device "sim:24cows": size "24cows": unknown unit "cows"`,
		"sim:99999999999TB": `did you mean "99999999999TiB"?`,
		"sim:1.5":           `size "1.5"`,
	} {
		_, err := sim.ParseDevice(spec)
		require.ErrorContains(t, err, want, spec)
	}
}

// TestCardsArePlausible looks for slips of the pen: a card has the gigabytes of its name, of 10⁹
// or 2³⁰ bytes, less a tenth at most, and memory of a speed that there is.
func TestCardsArePlausible(t *testing.T) {
	names := map[string]bool{}
	for i, c := range sim.Cards() {
		require.Regexp(t, `^[a-z]+[0-9]+s?-[0-9]+g$`, c.Name)
		require.False(t, names[c.Name], c.Name)
		names[c.Name] = true
		_, after, _ := strings.Cut(c.Name, "-")
		nominal, err := device.ParseSize(after)
		require.NoError(t, err)
		require.LessOrEqual(t, c.Memory, nominal, c.Name)
		require.Greater(t, float64(c.Memory), 0.9e9*float64(nominal/device.GiB), c.Name)
		require.NotEmpty(t, c.Model)
		require.NotEmpty(t, c.MemorySource)
		require.NotEmpty(t, c.BandwidthSource)
		require.Equal(t, c.Memory, device.AlignDown(c.Memory, 2*device.MiB), c.Name)
		require.Greater(t, c.Bandwidth, uint64(200e9))
		require.Less(t, c.Bandwidth, uint64(10e12))
		if i > 0 {
			require.LessOrEqual(t, c.Memory, sim.Cards()[i-1].Memory+100*device.MiB, "largest first")
		}
	}
}

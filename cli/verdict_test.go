package cli

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/launch"
)

// TestVerdictIsAboutTheProcessInNeed has a process with a high peak, and one that found no memory.
func TestVerdictIsAboutTheProcessInNeed(t *testing.T) {
	most := &launch.Process{Peak: 9 * device.GiB, Steps: 3}
	refused := &launch.Process{Peak: 2 * device.GiB, Refused: 1, FailedAt: 2, Asked: device.GiB}
	out := &outcome{&launch.Outcome{Processes: []*launch.Process{most, refused}}}
	slices.SortFunc(out.Processes, launch.ByNeed)
	var f runFlags
	require.Contains(t, f.verdict(out), "Fits only with refusals: PyTorch refused 1 request on a GPU ")
	require.Contains(t, f.verdict(out), "This is one of 2 processes.")
	refused.Refused = 0
	slices.SortFunc(out.Processes, launch.ByNeed)
	require.Contains(t, f.verdict(out), "reserved at most 9.00 GiB")
	require.Contains(t, f.verdict(out), "Of 2 processes this is the one with the highest peak.")
}

// TestTimingNamesTheRunThatFailed has a run with late events that failed with a lower peak.
func TestTimingNamesTheRunThatFailed(t *testing.T) {
	run := func(status int, peak device.Size) *outcome {
		return &outcome{&launch.Outcome{Status: status, Processes: []*launch.Process{{Peak: peak}}}}
	}
	var f runFlags
	require.Contains(t, f.timing(run(0, 4*device.GiB), run(1, 3*device.GiB)), "for them, which failed.")
	require.Contains(t, f.timing(run(0, 4*device.GiB), run(0, 5*device.GiB)), "This answer is about the higher one.")
}

package cli

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/launch"
	"github.com/vramyard/vramyard/harness/study/top"
	"github.com/vramyard/vramyard/harness/study/whatif"
)

// answered returns the answer about processes of a program on a GPU of 10 GiB.
func answered(status int, together device.Size, all ...*launch.Process) *runAnswer {
	slices.SortFunc(all, launch.ByNeed)
	f := runFlags{o: launch.Options{Context: 500 * device.MiB, Device: sim.Config{Capacity: 10 * device.GiB}}}
	out := &outcome{&launch.Outcome{Status: status, Peak: together, Processes: all}}
	out.Torch.Torch = "2.6.0"
	return f.answerOf(out, out, nil)
}

// TestVerdictIsAboutTheProcessInNeed has a process with a high peak, and one that found no memory.
func TestVerdictIsAboutTheProcessInNeed(t *testing.T) {
	t.Parallel()
	most := &launch.Process{Peak: 9 * device.GiB, Steps: 3}
	refused := &launch.Process{Peak: 2 * device.GiB, Refused: 1, FailedAt: 2, Asked: device.GiB, WentOn: true}
	a := answered(0, 0, most, refused)
	require.Equal(t, runRefusals, a.Verdict)
	require.Contains(t, a.Text[0], "Fits only with refusals: PyTorch refused 1 request on a GPU ")
	require.Contains(t, a.Text[0], "This is one of 2 processes.")
	refused.Refused = 0
	a = answered(0, 0, most, refused)
	require.Equal(t, runFits, a.Verdict)
	require.Contains(t, a.Text[0], "reserved at most 9.00 GiB")
	require.Contains(t, a.Text[0], ", in 3 steps. Of 2 processes this is the one with the highest peak.")
}

// TestVerdictNamesTheCauseOfTheEnd has programs whose requests were refused and that failed, for
// lack of memory or later for another reason.
func TestVerdictNamesTheCauseOfTheEnd(t *testing.T) {
	t.Parallel()
	const none = "No answer: the program ended with status 1 after 6 steps, not for lack of memory. Until then PyTorch " +
		"reserved at most 4.00 GiB on a GPU (10.00 GiB, of which CUDA's context takes 500.00 MiB). It refused 3 requests, " +
		"the last one for 1.00 GiB in step 7, and the program went on."
	const small = "Does not fit: in step 7 PyTorch found no room for 1.00 GiB on a GPU (10.00 GiB, of which CUDA's " +
		"context takes 500.00 MiB)."
	for name, c := range map[string]struct {
		raised, starved, wentOn bool
		want                    string
	}{
		"out of memory":                     {true, true, true, small},
		"another exception":                 {true, false, false, none},
		"exit right after the refusal":      {false, false, false, small},
		"exit long after the refusal":       {false, false, true, none},
		"killed while it handled a refusal": {false, false, false, small},
	} {
		a := answered(1, 0, &launch.Process{
			Peak: 4 * device.GiB, Steps: 6, Refused: 3, FailedAt: 7, Asked: device.GiB,
			Raised: c.raised, Starved: c.starved, WentOn: c.wentOn,
		})
		require.Equal(t, []string{c.want}, a.Text, name)
	}
	a := answered(3, 0, &launch.Process{Peak: device.GiB})
	require.Equal(t, runUnknown, a.Verdict)
	require.Contains(t, a.Text[0], "No answer: the program ended with status 3 before its first step ended, not for lack ")
	a = answered(0, 0, &launch.Process{Peak: device.GiB})
	require.Contains(t, a.Text[0], "takes 500.00 MiB), without a step of an optimizer.")
}

// TestVerdictAddsProcessesUp has processes that hold memory at the same time.
func TestVerdictAddsProcessesUp(t *testing.T) {
	t.Parallel()
	first := &launch.Process{Peak: 4 * device.GiB, Steps: 3}
	a := answered(0, 7*device.GiB, first, &launch.Process{Peak: 3 * device.GiB})
	require.Equal(t, 7*device.GiB+500*device.MiB, a.Together)
	require.Equal(t, []string{
		"Together the processes held at most 7.49 GiB of the GPU at a time, with a context each.",
		"The answer below is about this process. It counts 3.00 GiB of the others as if they were part of CUDA's context.",
	}, a.Text[1:])
	require.Len(t, answered(0, 4*device.GiB, first, &launch.Process{Peak: 3 * device.GiB}).Text, 1, "one after the other")
	a = answered(1, 9*device.GiB, first, &launch.Process{
		Peak: 3 * device.GiB, Refused: 1, FailedAt: 1, Asked: 2 * device.GiB, Others: 5 * device.GiB,
	})
	require.Contains(t, a.Text[0], "found no room for 2.00 GiB on a GPU (10.00 GiB, of which CUDA's context takes "+
		"500.00 MiB), while other processes held 5.00 GiB with their contexts. This is one of 2 processes.")
	require.Contains(t, a.Text[2], "It counts 5.00 GiB of the others")
}

// TestRunsWithoutAHistory names a refused request even if nothing was ever reserved.
func TestRunsWithoutAHistory(t *testing.T) {
	t.Parallel()
	f := runFlags{o: launch.Options{Device: sim.Config{Capacity: 10 * device.GiB}}}
	of := func(status int, all ...*launch.Process) error {
		return f.unrecorded(&outcome{&launch.Outcome{Status: status, Processes: all}})
	}
	for _, all := range [][]*launch.Process{nil, {{}}} {
		require.ErrorContains(t, of(0, all...), "status 0 before PyTorch used the GPU: nothing is recorded.")
	}
	refused := launch.Process{Refused: 1, FailedAt: 1, Asked: 20 * device.GiB}
	err := of(1, &refused)
	require.ErrorContains(t, err, "reserved at most 0 B, and in step 1 PyTorch found no room for 20.00 GiB on a GPU (10")
	require.True(t, isFailure(err))
	refused.WentOn = true
	require.False(t, isFailure(of(1, &refused)))
	refused.Snapshot = "process0.pickle"
	require.NoError(t, of(1, &refused))
}

func isFailure(err error) bool {
	_, ok := errors.AsType[failure](err)
	return ok
}

// TestTimingNamesTheRunThatFailed has a run with late events that failed with a lower peak.
func TestTimingNamesTheRunThatFailed(t *testing.T) {
	t.Parallel()
	timing := func(atOnce, late *launch.Outcome) *runAnswer {
		var a runAnswer
		(&runFlags{}).timing(&a, &outcome{atOnce}, &outcome{late})
		return &a
	}
	run := func(status int, peak device.Size) *launch.Outcome {
		return &launch.Outcome{Status: status, Processes: []*launch.Process{{Peak: peak}}}
	}
	require.Contains(t, timing(run(0, 4*device.GiB), run(1, 3*device.GiB)).Text[0], "for them, which failed.")
	a := timing(run(0, 4*device.GiB), run(0, 5*device.GiB))
	require.Contains(t, a.Text[0], "This answer is about the higher one.")
	require.Equal(t, runRanges{AtOnce: 4 * device.GiB, Late: 5 * device.GiB}, a.Ranges)
}

// TestAnswersOfRunsAreOneStructure has the same answer as text and as JSON beside that of whatif.
func TestAnswersOfRunsAreOneStructure(t *testing.T) {
	t.Parallel()
	a := answered(0, 0, &launch.Process{
		Peak: device.GiB, Steps: 1, Guessed: launch.Guessed{Other: 2}, Reads: []launch.Read{{Line: "a.py:7", Times: 9}},
	})
	a.Live, a.Holders = 5, []top.Holder{{Share: top.Share{Name: "a.py:3 main", Bytes: 5}, Category: top.Weights}}
	require.Equal(t, `Fits: PyTorch 2.6.0 reserved at most 1.00 GiB on a GPU (10.00 GiB, of which CUDA's context takes `+
		`500.00 MiB), in 1 step.
2 other calls ran with a guessed work area: that of cuDNN, cuSOLVER, cuSPARSE or cuFFT is not known (docs/without-gpu.md).
These calls take no memory here, so the peak may be too low.
Unknown values of tensors were read as zeros:
     9 times  a.py:7

At the peak 5 B are live. Most of it belongs to:
         5 B  a.py:3 main  weights

`, a.String())
	text, err := json.Marshal(runResult{&whatif.Result{Schema: whatif.Schema}, a})
	require.NoError(t, err)
	alone, err := json.Marshal(&whatif.Result{Schema: whatif.Schema})
	require.NoError(t, err)
	require.Equal(t, string(alone[:len(alone)-1]), string(text[:len(alone)-1]), "the fields of whatif stay as they are")
	var back struct{ Run runAnswer }
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, *a, back.Run)
}

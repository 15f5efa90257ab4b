package whatif_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/postmortem"
	"github.com/vramyard/vramyard/harness/study/whatif"
)

// TestFailureIsExplained takes the recorded refusal, and one that only the card in question makes.
func TestFailureIsExplained(t *testing.T) {
	text := scattered()
	r := search(t, read(t, text), quick(t), whatif.Options{Card: 190 * device.MiB})
	require.NotNil(t, r.Explained)
	require.Equal(t, 72, r.Explained.Event)
	require.Equal(t, postmortem.Refused, r.Explained.Replayed.Outcome)
	require.Equal(t, 60*device.MiB, r.Explained.Replayed.Report.Requested)
	require.Equal(t, postmortem.CauseScattered, r.Explained.Replayed.Report.Cause)
	granted := 0
	for _, p := range r.Runs {
		require.NotNil(t, p.AtFailure, p.Label)
		if *p.Carried {
			require.Equal(t, postmortem.Granted, p.AtFailure.Outcome, p.Label)
			granted++
		}
	}
	require.NotZero(t, granted)
	require.LessOrEqual(t, r.Replayed, r.Budget)
	var out bytes.Buffer
	require.NoError(t, report.WhatIf(&out, r))
	require.Contains(t, out.String(), "The only failure, at event 72, in the replay of the recorded settings:\n\nno "+
		"room for 60.00 MiB on stream 0: ")
	require.Regexp(t,
		`│ bfc +│   204\.00 MiB │ [^\n]*fails │    204\.00 MiB │ .*│ FAILED, measured on 204\.00 MiB instead `,
		out.String())
	require.Contains(t, out.String(), "With other settings that request (event 72) would have been:\n- granted, ")

	plain := strings.ReplaceAll(text, "refused 60MiB\n", "a 99 60MiB\n")
	r = search(t, read(t, plain), quick(t), whatif.Options{Card: 190 * device.MiB})
	require.Equal(t, 72, r.Explained.Event, "the first request that the recorded settings are refused")
	r = search(t, read(t, plain), quick(t), whatif.Options{Card: device.GiB})
	require.Nil(t, r.Explained)
	r = search(t, read(t, text), quick(t), whatif.Options{})
	require.Nil(t, r.Explained, "no card is known")
}

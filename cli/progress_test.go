package cli

import (
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestProgressEstimatesTheRemainingTime(t *testing.T) {
	for want, s := range map[string]stage{
		"reading x.csv 25 % of 4.00 MiB, about 6s left, 512.00 KiB/s": {what: "reading x.csv", unit: "bytes", done: 1 << 20,
			total: 4 << 20},
		"reading standard input 1.00 MiB, for 2s, 512.00 KiB/s": {what: "reading standard input", unit: "bytes",
			done: 1 << 20},
		"3 of 4 runs, about 1s left, 1.5/s, 12M events/s": {unit: "runs", done: 3, total: 4, events: 24_000_000},
		"0 of 2 runs, about 6s left, 1.2M events/s": {unit: "runs", total: 2, events: 2_400_000,
			share: 0.25},
		"0 of 4 runs, for 2s, 1.2M events/s": {unit: "runs", total: 4, events: 2_400_000},
		"replaying 90000 of 100000 events, about 0s left, 45k/s": {what: "replaying", unit: "events", done: 90_000,
			total: 100_000},
		"explaining, for 2s": {what: "explaining"},
	} {
		assert.Equal(t, want, s.line(2*time.Second))
	}
}

func TestProgressLeavesMessagesAlone(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	p := &progress{terminal: w}
	p.begin(stage{what: "reading", quiet: true})
	p.begun = p.begun.Add(-time.Hour)
	p.reached(1, 2)
	p.interject(func() {
		assert.False(t, p.lock.TryLock(), "no line is drawn")
		fmt.Fprintln(w, "a message")
	})
	p.reached(2, 2)
	p.stop()
	p.reached(3, 3) // of a stage that has ended
	require.NoError(t, w.Close())
	drawn, err := io.ReadAll(r)
	require.NoError(t, err)
	assert.Regexp(t, `^\rreading 1 of 2, .*\x1b\[K\r\x1b\[Ka message\n\rreading 2 of 2, .*\x1b\[K\r\x1b\[K$`, string(drawn))
}

func TestNoProgressCostsNothing(t *testing.T) {
	var p *progress
	p.begin(stage{what: "reading"})
	p.reached(1, 2)
	p.step()
	p.replayed(3)
	p.stop()
	assert.Nil(t, newProgress(t.Output()), "no terminal")
}

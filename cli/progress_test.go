package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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

func TestNoProgressCostsNothing(t *testing.T) {
	var p *progress
	p.begin(stage{what: "reading"})
	p.reached(1, 2)
	p.step()
	p.replayed(3)
	p.stop()
	assert.Nil(t, newProgress(t.Output()), "no terminal")
}

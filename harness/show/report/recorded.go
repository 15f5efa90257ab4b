package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/internal/units"
)

// recordedNotes returns notes that relate the runs of a trace to its recording: the device of their
// figures, and the row of the recorded settings.
func recordedNotes(runs []compare.Run) (all []string) {
	at := slices.IndexFunc(runs, func(r compare.Run) bool { return r.AsRecorded })
	if card := runs[0].Card; card > 0 {
		all = append(all, measuredOn(runs, card))
	} else if at >= 0 {
		all = append(all, fmt.Sprintf("Measured on %s: the file does not show the size of the recorded card.",
			units.Bytes(runs[at].Device)))
	}
	if at >= 0 {
		all = append(all, fmt.Sprintf("%q has the recorded settings: %s", runs[at].Strategy, runs[at].Config))
	}
	return all
}

// measuredOn names the devices of the figures.
func measuredOn(runs []compare.Run, card device.Size) string {
	var atMinimum []string
	for _, r := range runs {
		if r.Device != card {
			atMinimum = append(atMinimum, r.Strategy)
		}
	}
	switch {
	case len(atMinimum) == 0:
		return fmt.Sprintf("Measured on %s, the card of the recording.", units.Bytes(card))
	case len(atMinimum) == len(runs):
		return fmt.Sprintf("Measured on %s; the card of the recording has %s.", units.Bytes(runs[0].Device),
			units.Bytes(card))
	}
	return fmt.Sprintf("Measured on %s, the card of the recording; on its minimum capacity: %s.", units.Bytes(card),
		strings.Join(atMinimum, ", "))
}

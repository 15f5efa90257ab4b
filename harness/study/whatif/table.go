package whatif

import (
	"encoding/json"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace/flat"
)

// tableRow is a setting. Its label and environment are its own; the figures are of the setting that
// was replayed for it.
type tableRow struct {
	Label       string `json:"label"`
	Environment string `json:"environment"` // how users of a framework choose the setting; empty: they cannot
	ReplayedAs  string `json:"replayed_as"` // label of the setting that was replayed: this one, or one that decides alike
	// CardBytes is the capacity of the card in question; 0: not known.
	CardBytes device.Size `json:"card_bytes"`
	Point
}

// Table returns all settings for programs that analyse them, one row for each. A setting that
// decides like a replayed one has its figures.
func Table(r *Result) *flat.Table {
	var rows []tableRow
	for i := range r.Runs {
		p := &r.Runs[i]
		rows = append(rows, tableRow{p.Label, strings.Join(p.environment(), " "), p.Label, r.Card, *p})
		for _, other := range p.alike {
			row := tableRow{other.Label, strings.Join(other.environment(), " "), p.Label, r.Card, *p}
			row.Strategy, row.Changes, row.Recorded = other.Strategy, other.Changes, other.Recorded
			row.Config, _ = json.Marshal(other.Setup(p.Device).Config) // a configuration encodes to JSON
			rows = append(rows, row)
		}
	}
	return flat.Of(rows)
}

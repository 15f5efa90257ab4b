package whatif

import (
	"encoding/json"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace/flat"
)

// tableRow is a setting. Label and environment are its own; the figures are of the setting replayed
// for it.
type tableRow struct {
	Label       string `json:"label"`
	Environment string `json:"environment"` // variables that select the setting; empty: not selectable
	ReplayedAs  string `json:"replayed_as"` // label of the setting that was replayed: this one or an equivalent one
	// CardBytes is the capacity of the card; 0: unknown.
	CardBytes device.Size `json:"card_bytes"`
	Point
}

// Table returns all settings as a flat table. Equivalent settings share figures.
func Table(r *Result) *flat.Table { return flat.Of(tableRows(r)) }

func tableRows(r *Result) (rows []tableRow) {
	for i := range r.Runs {
		p := &r.Runs[i]
		rows = append(rows, tableRow{p.Label, strings.Join(p.environment(), " "), p.Label, r.Card, *p})
		for _, other := range p.alike {
			row := tableRow{other.Label, strings.Join(other.environment(), " "), p.Label, r.Card, *p}
			row.Strategy, row.Changes, row.Recorded = other.Strategy, other.Changes, other.Recorded
			row.Permit = other.Permit
			row.Config, _ = json.Marshal(other.Setup(p.Device).Config) // cannot fail for a configuration
			rows = append(rows, row)
		}
	}
	return rows
}

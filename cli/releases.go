package cli

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/harness/study/whatif"
	"github.com/vramyard/vramyard/internal/torchenv"
	"github.com/vramyard/vramyard/strategies/caching"
)

// errReleasesGrid refuses a file of settings beside --across-releases.
var errReleasesGrid = errors.New("with --across-releases: want quick or full")

// releases returns the recorded settings and no settings, under the rules of every range of
// releases of PyTorch.
func releases(c setting.Catalogue, rec *whatif.Recorded, d setting.Demand) ([]whatif.Releases, error) {
	if rec.Framework != "" && rec.Framework != torchenv.Framework {
		return nil, fmt.Errorf("the run is recorded by %s: want one of %s", rec.Framework, torchenv.Framework)
	}
	none := whatif.Releases{Settings: "without any setting", Ranges: releaseRanges(c, caching.Config{}, d)}
	if rec.Setup.Name == "" {
		return []whatif.Releases{none}, nil
	}
	config, ok := rec.Setup.Config.(caching.Config)
	if !ok {
		return nil, fmt.Errorf("the run is recorded with the strategy %s: want one with %s", rec.Setup.Name, cachingName)
	}
	recorded := whatif.Releases{Settings: "with the recorded settings", Ranges: releaseRanges(c, config, d)}
	if config.Conf == "" && config.MemoryFraction == 0 {
		return []whatif.Releases{recorded}, nil
	}
	return []whatif.Releases{recorded, none}, nil
}

// releaseRanges returns the ranges of releases with the settings under the rules of each. Releases
// that are older than a setting are a range of their own.
func releaseRanges(c setting.Catalogue, config caching.Config, d setting.Demand) (all []whatif.ReleaseRange) {
	for _, rules := range caching.RuleSets() {
		config.Rules = rules.Name
		r := whatif.ReleaseRange{From: rules.From, To: rules.To, Changes: rules.ChangesFor(config, d)}
		text, err := json.Marshal(config)
		if err == nil {
			r.Setup, err = c.Lookup(cachingName, text)
		}
		if err != nil {
			r.Refused = err.Error()
		}
		for _, e := range r.Setup.Exports() { // none without a setup
			if e.Framework == torchenv.Framework && torchenv.Older(r.From, e.From) {
				all = append(all, whatif.ReleaseRange{From: r.From, To: r.From, Refused: "they came with " + e.From})
				r.From = e.From
			}
		}
		all = append(all, r)
	}
	return all
}

package remat

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

// mgeScore is the settings of MegEngine's score: exponents, weights, and the measure of costs.
type mgeScore struct {
	time, size, stale float64 // exponents of the cost, the bytes and the staleness
	neighbors, free   float64 // weights of the adjacent components and of the adjacent free bytes
	again             float64 // factor for each recomputation of the tensor
	measured          bool    // costs are measured time, not bytes moved
}

// mgeDefault returns the settings of MegEngine's code.
func mgeDefault() mgeScore {
	return mgeScore{time: 1, size: 1, stale: 1, neighbors: 1, free: 1, again: 1.0001}
}

// swapDefault returns the settings of heuristics without any: storages are dropped.
func swapDefault() swapConfig {
	card, _ := cardOf(defaultCard)
	return swapConfig{link: card.Link}
}

// settings are the settings of a heuristic; mgeScore is for mge and mge-nofrag.
type settings struct {
	mgeScore
	swapConfig
}

// HeuristicSetting is a setting of a heuristic, such as the two in mge:size=2:stale=0.5.
type HeuristicSetting struct {
	Name    string // before the equals sign
	Meaning string // the factor, exponent or rule it sets
	Default string // its value without the setting
	Want    string // the values it accepts

	set func(s *settings, value string) bool
}

// defaultCard is the card whose figures are the defaults.
const defaultCard = "a100-80g"

// cardOf returns the simulated card of a name.
func cardOf(name string) (sim.Card, bool) {
	cards := sim.Cards()
	i := slices.IndexFunc(cards, func(c sim.Card) bool { return c.Name == name })
	if i < 0 {
		return sim.Card{}, false
	}
	return cards[i], true
}

// EvictionSettings returns the settings that every heuristic accepts after its name, each after a
// colon.
func EvictionSettings() []HeuristicSetting {
	ways := []string{"drop", "swap", "cheaper"} // by way
	return []HeuristicSetting{
		{"evict", "`drop` recomputes a victim when it is read, `swap` copies it to the host, `cheaper` does " +
			"what should take less time", ways[dropAlways], strings.Join(ways, ", "), func(s *settings, value string) bool {
			i := slices.Index(ways, value)
			s.way = way(max(i, 0))
			return i >= 0
		}},
		{"link", "bandwidth to the host in each direction: the link of a card, GB/s, or `inf`",
			defaultCard, "a card such as h100-80g, 0.001 to 1000000 GB/s, or inf", func(s *settings, value string) bool {
				card, ok := cardOf(value)
				if s.link = card.Link; ok || value == "inf" {
					return true
				}
				x, err := strconv.ParseFloat(value, 64)
				s.link = uint64(max(0, min(x, 1e6)) * 1e9)
				return err == nil && x >= 1e-3 && x <= 1e6
			}},
		{"host", "bytes of host memory for victims", "unlimited", "a size such as 64GiB",
			func(s *settings, value string) bool {
				size, err := device.ParseSize(value)
				s.host = size
				return err == nil && size > 0 || value == "unlimited"
			}},
	}
}

// ScoreSettings returns the settings of MegEngine's score, which mge and mge-nofrag accept beside
// those of every heuristic.
func ScoreSettings() []HeuristicSetting {
	number := func(name, meaning, def string, of func(*mgeScore) *float64) HeuristicSetting {
		return HeuristicSetting{name, meaning, def, "0 to 10", func(m *settings, value string) bool {
			x, err := strconv.ParseFloat(value, 64)
			*of(&m.mgeScore) = x
			return err == nil && x >= 0 && x <= 10
		}}
	}
	return []HeuristicSetting{
		number("time", "exponent of the cost", "1", func(m *mgeScore) *float64 { return &m.time }),
		number("size", "exponent of the size", "1", func(m *mgeScore) *float64 { return &m.size }),
		number("stale", "exponent of the staleness", "1", func(m *mgeScore) *float64 { return &m.stale }),
		number("neighbors", "weight of `N`, the evicted components around the tensor", "1",
			func(m *mgeScore) *float64 { return &m.neighbors }),
		number("free", "weight of `f`, the adjacent free bytes; 0 is `mge-nofrag`", "1",
			func(m *mgeScore) *float64 { return &m.free }),
		number("again", "factor for each recomputation of the tensor", "1.0001",
			func(m *mgeScore) *float64 { return &m.again }),
		{"measure", "costs and staleness are bytes moved (MegEngine's code), or measured time (its articles)", "bytes",
			"bytes or time", func(m *settings, value string) bool {
				m.measured = value == "time"
				return m.measured || value == "bytes"
			}},
	}
}

// maxVariants bounds the result of [Variants].
const maxVariants = 1000

// Variants expands lists of values, separated by slashes, to all combinations of settings:
// mge:size=0/1/2:stale=0/1 gives six names. A name without lists is returned alone.
func Variants(name string) ([]string, error) {
	base, settings, given := strings.Cut(name, ":")
	if !given {
		return []string{name}, nil
	}
	all := []string{base}
	for setting := range strings.SplitSeq(settings, ":") {
		key, values, _ := strings.Cut(setting, "=")
		var longer []string
		for _, prefix := range all {
			for value := range strings.SplitSeq(values, "/") {
				longer = append(longer, prefix+":"+key+"="+value)
			}
		}
		if all = longer; len(all) > maxVariants {
			return nil, fmt.Errorf("heuristic %.60q: want at most %d combinations of values", name, maxVariants)
		}
	}
	return all, nil
}

// applySettings applies the settings after the name of a heuristic, and returns those of swapping.
func (h *Heuristic) applySettings(text string) (swapConfig, error) {
	all := settings{mgeDefault(), swapDefault()}
	known, seen := EvictionSettings(), []string{}
	scored := h.Name == "mge" || h.Name == "mge-nofrag"
	if scored {
		known = append(ScoreSettings(), known...)
	}
	if h.Name == "mge-nofrag" {
		all.free = 0
	}
	names := []string{}
	for _, s := range known {
		names = append(names, s.Name)
	}
	for one := range strings.SplitSeq(text, ":") {
		key, value, _ := strings.Cut(one, "=")
		at := slices.IndexFunc(known, func(s HeuristicSetting) bool { return s.Name == key })
		switch {
		case at < 0:
			return all.swapConfig, fmt.Errorf("heuristic %s: setting %.40q: want %s", h.Name, key, strings.Join(names, ", "))
		case slices.Contains(seen, key):
			return all.swapConfig, fmt.Errorf("heuristic %s: setting %s is given twice", h.Name, key)
		case !known[at].set(&all, value):
			return all.swapConfig, fmt.Errorf("heuristic %s: %s is %.40q, want %s", h.Name, key, value, known[at].Want)
		}
		seen = append(seen, key)
	}
	if scored {
		h.newScorer = newMge(all.mgeScore)
	}
	if all.measured {
		h.traits |= needsTimes
	}
	return all.swapConfig, nil
}

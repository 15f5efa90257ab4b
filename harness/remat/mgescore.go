package remat

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
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

// ScoreSetting is a setting of MegEngine's score, such as the two in mge:size=2:stale=0.5.
type ScoreSetting struct {
	Name    string // before the equals sign
	Meaning string // the factor or exponent it sets
	Default string // its value in MegEngine's code
	Want    string // the values it accepts

	set func(m *mgeScore, value string) bool
}

// ScoreSettings returns the settings that mge and mge-nofrag accept after their name, each after a
// colon.
func ScoreSettings() []ScoreSetting {
	number := func(name, meaning, def string, of func(*mgeScore) *float64) ScoreSetting {
		return ScoreSetting{name, meaning, def, "0 to 10", func(m *mgeScore, value string) bool {
			x, err := strconv.ParseFloat(value, 64)
			*of(m) = x
			return err == nil && x >= 0 && x <= 10
		}}
	}
	return []ScoreSetting{
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
			"bytes or time", func(m *mgeScore, value string) bool {
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

var errNoSettings = errors.New("only mge and mge-nofrag have settings")

// applySettings applies the settings after the name of a heuristic.
func (h *Heuristic) applySettings(text string) error {
	score := mgeDefault()
	switch h.Name {
	case "mge":
	case "mge-nofrag":
		score.free = 0
	default:
		return fmt.Errorf("heuristic %s: %w", h.Name, errNoSettings)
	}
	known, seen := ScoreSettings(), []string{}
	for one := range strings.SplitSeq(text, ":") {
		key, value, _ := strings.Cut(one, "=")
		at := slices.IndexFunc(known, func(s ScoreSetting) bool { return s.Name == key })
		switch {
		case at < 0:
			return fmt.Errorf("heuristic %s: setting %.40q: want %s", h.Name, key, strings.Join(scoreNames(), ", "))
		case slices.Contains(seen, key):
			return fmt.Errorf("heuristic %s: setting %s is given twice", h.Name, key)
		case !known[at].set(&score, value):
			return fmt.Errorf("heuristic %s: %s is %.40q, want %s", h.Name, key, value, known[at].Want)
		}
		seen = append(seen, key)
	}
	h.newScorer = newMge(score)
	if score.measured {
		h.traits |= needsTimes
	}
	return nil
}

func scoreNames() (names []string) {
	for _, s := range ScoreSettings() {
		names = append(names, s.Name)
	}
	return names
}

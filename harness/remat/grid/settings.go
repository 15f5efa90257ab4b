package grid

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
)

// Settings are what all runs of a grid have in common. An empty text is the default of package
// remat.
type Settings struct {
	Liveness string `json:"liveness"` // of remat.Livenesses; also for the base peak
	// of remat.Triggers, with ":" and a share of the budget behind it for another bound than all
	Trigger  string `json:"trigger"`
	Defrag   string `json:"defrag"`   // of remat.DefragKinds
	Sampling string `json:"sampling"` // none, stride, mge, or how many candidates are drawn
	// bytes up to which a tensor is too small, or a share of the mean such as 1%; with ",cut" as
	// MegEngine does it
	MinEvictee string `json:"min_evictee"`
	// in which order what an operator lacks is made again: argument, cheapest, largest
	Order      string  `json:"parent_order"`
	EarlyEvict bool    `json:"eager_in_remat"` // what was made again and is dead goes as soon as it was read
	Quirks     string  `json:"quirks"`         // of MegEngine, as remat.ParseQuirks reads them
	Limit      float64 `json:"limit"`          // most time of a run without moves, in times of its operators; more than 1
	Seed       uint64  `json:"seed"`           // of what is drawn
}

// errNumber is what is wrong with a sample, errMinimum with a least size, errShare with a share of
// the budget.
var (
	errNumber  = errors.New("want none, stride, mge, or a number from 1 to 1000000")
	errMinimum = errors.New(`want a size such as 1MiB, with ",cut" behind it or not, or a share such as 1%`)
	errShare   = errors.New("want more than 0, at most 1")
)

func (s *Settings) config(budget device.Size, counts bool) (c remat.Config, err error) {
	c = remat.Config{Liveness: s.Liveness, Seed: s.Seed, Defrag: remat.Defrag{Kind: s.Defrag}, EagerInRemat: s.EarlyEvict}
	kind, share, bounded := strings.Cut(s.Trigger, ":")
	c.Trigger = remat.Trigger{Kind: kind, Bytes: budget}
	if bounded {
		r, err := parseRatio(share)
		if err == nil && r > Whole {
			err = fmt.Errorf("ratio %q: %w", share, errShare)
		}
		if err != nil {
			return c, err
		}
		c.Trigger.Bytes = r.Of(budget)
	}
	if counts && kind == "reserve" { // it asks for holes, which numbers do not have
		c.Trigger = remat.Trigger{}
	}
	if c.Sampling, err = parseSampling(s.Sampling); err != nil {
		return c, err
	}
	if c.MinEvictee, err = parseMinimum(s.MinEvictee); err != nil {
		return c, err
	}
	if c.ParentOrder, err = parseOrder(s.Order); err != nil {
		return c, err
	}
	c.Quirks, err = remat.ParseQuirks(s.Quirks)
	return c, err
}

// Check returns what is wrong with the settings, for a heuristic and a ladder, without running
// anything.
func (s *Settings) Check(heuristic, ladder string) error {
	c, err := s.config(0, false)
	if err != nil {
		return err
	}
	c.Heuristic, c.Ladder = heuristic, ladder
	_, err = remat.Run(&remat.Schedule{}, &remat.Space{}, c)
	return err
}

func parseSampling(text string) (remat.Sampling, error) {
	kinds := map[string]remat.SampleKind{"": remat.SampleNone, "none": remat.SampleNone, "stride": remat.SampleStride,
		"mge": remat.SampleMGE}
	if kind, ok := kinds[text]; ok {
		return remat.Sampling{Kind: kind}, nil
	}
	const most = 1_000_000
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return remat.Sampling{}, fmt.Errorf("%.40q: %w", text, errNumber)
	}
	return remat.Sampling{Kind: remat.SampleK, K: n}, nil
}

// Orders returns the names of the orders in which what an operator lacks is made again.
func Orders() []string { return []string{"argument", "cheapest", "largest"} }

func parseOrder(text string) (remat.ParentOrder, error) {
	orders := []remat.ParentOrder{remat.ByArgument, remat.CheapestFirst, remat.LargestFirst}
	if i := slices.Index(Orders(), text); i >= 0 {
		return orders[i], nil
	}
	if text == "" {
		return remat.ByArgument, nil
	}
	return 0, fmt.Errorf("order %.40q: want %s", text, strings.Join(Orders(), ", "))
}

func parseMinimum(text string) (m remat.Minimum, err error) {
	if share, ok := strings.CutSuffix(text, "%"); ok {
		m.Percent, err = strconv.Atoi(share)
		if err != nil || m.Percent < 0 || m.Percent > 100 {
			return m, fmt.Errorf("%.40q: %w", text, errMinimum)
		}
		return m, nil
	}
	size := text
	size, m.Cut = strings.CutSuffix(size, ",cut")
	if size == "" && !m.Cut {
		return m, nil
	}
	if m.Size, err = device.ParseSize(size); err != nil {
		return m, fmt.Errorf("%.40q: %w", text, errMinimum)
	}
	return m, nil
}

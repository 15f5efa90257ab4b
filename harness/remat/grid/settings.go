package grid

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
)

// Settings are common to all runs of a grid. An empty string selects the default of package remat.
type Settings struct {
	Liveness string `json:"liveness"` // one of remat.Livenesses; also for the base peak
	// one of remat.Triggers, optionally with its bound as a share of the budget, such as
	// threshold:0.9
	Trigger  string `json:"trigger"`
	Defrag   string `json:"defrag"`   // one of remat.DefragKinds
	Sampling string `json:"sampling"` // none, stride, mge, or a sample size
	// size up to which tensors are never evicted, or a percentage of the mean size such as 1%; with
	// ",cut" after the size, as in MegEngine, such tensors are pinned when they are created
	MinEvictee string `json:"min_evictee"`
	// order of missing inputs: argument, cheapest, largest
	ParentOrder  string  `json:"parent_order"`
	EagerInRemat bool    `json:"eager_in_remat"` // evict a dead tensor restored by a rerun after its last read
	Quirks       string  `json:"quirks"`         // as remat.ParseQuirks reads them
	Limit        float64 `json:"limit"`          // most time of a run without moves, in compute times of the log; above 1
	Seed         uint64  `json:"seed"`           // for random choices
}

// Field is one of [Settings].
type Field struct {
	Flag  string // name of its flag of vramyard remat
	Value any    // pointer to a string, bool, float64 or uint64
}

// Fields returns all settings, to be read or set.
func (s *Settings) Fields() []Field {
	return []Field{
		{"liveness", &s.Liveness}, {"trigger", &s.Trigger}, {"defrag", &s.Defrag}, {"sampling", &s.Sampling},
		{"min-evictee", &s.MinEvictee}, {"parent-order", &s.ParentOrder}, {"eager-in-remat", &s.EagerInRemat},
		{"quirks", &s.Quirks}, {"limit", &s.Limit}, {"seed", &s.Seed},
	}
}

// String formats the value as the flag has it.
func (f Field) String() string { return fmt.Sprint(reflect.ValueOf(f.Value).Elem()) }

// Usual returns the options of a grid for which nothing is chosen.
func Usual() Options {
	return Options{
		Settings: Settings{Liveness: "eager", Trigger: remat.Triggers()[0], Defrag: remat.DefragKinds()[0], Sampling: "none",
			ParentOrder: ParentOrders()[0], Limit: 2},
		Heuristics: []string{"eq", "mge", "coop"}, Ladders: []string{Evict, DefragFirst}, Ratios: usualRatios(),
	}
}

// UsualRatios are the budgets of [Usual], as [ParseRatios] reads them.
const UsualRatios = "0.1:1.0:0.1"

func usualRatios() []Ratio {
	all, err := ParseRatios(UsualRatios)
	if err != nil {
		panic(err) // a constant
	}
	return all
}

// maxHeuristics bounds the heuristics of a grid.
const maxHeuristics = 1000

// ParseHeuristics expands each name that means several heuristics, and drops repetitions.
func ParseHeuristics(names []string) (all []string, err error) {
	seen := map[string]bool{}
	for _, name := range names {
		list, err := remat.Variants(name)
		if err != nil {
			return nil, err
		}
		for _, one := range list {
			if !seen[one] {
				seen[one] = true
				all = append(all, one)
			}
		}
		if len(all) > maxHeuristics {
			return nil, fmt.Errorf("more than %d heuristics", maxHeuristics)
		}
	}
	return all, nil
}

var (
	errLimit   = errors.New("want more than 1, at most 1000000")
	errNumber  = errors.New("want none, stride, mge, or a number from 1 to 1000000")
	errMinimum = errors.New(`want a size such as 1MiB or 1MiB,cut, or a percentage such as 1%`)
	errShare   = errors.New("want more than 0, at most 1")
)

// CheckLimit validates a [Settings].Limit.
func CheckLimit(limit float64) error {
	if !(limit > 1 && limit <= 1e6) {
		return fmt.Errorf("%v: %w", limit, errLimit)
	}
	return nil
}

func (s *Settings) config(budget device.Size, counts bool) (c remat.Config, err error) {
	c = remat.Config{Liveness: s.Liveness, Seed: s.Seed, EagerInRemat: s.EagerInRemat}
	c.Defrag.Kind = s.Defrag
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
	if counts && kind == "reserve" { // a Counter has no holes
		c.Trigger = remat.Trigger{}
	}
	if c.Sampling, err = parseSampling(s.Sampling); err != nil {
		return c, err
	}
	if c.MinEvictee, err = parseMinimum(s.MinEvictee); err != nil {
		return c, err
	}
	if c.ParentOrder, err = parseOrder(s.ParentOrder); err != nil {
		return c, err
	}
	c.Quirks, err = remat.ParseQuirks(s.Quirks)
	return c, err
}

// Check validates the settings with a heuristic and a ladder, without running anything.
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

// ParentOrders returns the names of the orders of missing inputs.
func ParentOrders() []string { return []string{"argument", "cheapest", "largest"} }

func parseOrder(text string) (remat.ParentOrder, error) {
	orders := []remat.ParentOrder{remat.ByArgument, remat.CheapestFirst, remat.LargestFirst}
	if i := slices.Index(ParentOrders(), text); i >= 0 {
		return orders[i], nil
	}
	if text == "" {
		return remat.ByArgument, nil
	}
	return 0, fmt.Errorf("order %.40q: want %s", text, strings.Join(ParentOrders(), ", "))
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

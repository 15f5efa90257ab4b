package grid

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/device"
)

// Ratio is a share in millionths, so that sums and differences are exact. In JSON it is a number.
type Ratio int64

// Whole is the ratio 1. Half is the budget at which overheads are compared.
const (
	Whole Ratio = 1_000_000
	Half        = Whole / 2
)

// Bounds of the input.
const (
	maxRatio  = 10 * Whole
	maxRatios = 1000
)

var (
	errRatio = errors.New("want more than 0, at most 10, with no more than six decimals")
	errRange = errors.New("want FROM:TO:STEP, such as 0.1:1.0:0.1")
)

// ParseRatios reads comma-separated ratios, each a number or an inclusive range FROM:TO:STEP. It
// returns them sorted, without duplicates.
func ParseRatios(s string) ([]Ratio, error) {
	var all []Ratio
	for part := range strings.SplitSeq(s, ",") {
		var ends []Ratio
		for text := range strings.SplitSeq(part, ":") {
			r, err := parseRatio(strings.TrimSpace(text))
			if err != nil {
				return nil, err
			}
			ends = append(ends, r)
		}
		switch {
		case len(ends) == 1:
			all = append(all, ends[0])
			continue
		case len(ends) != 3 || ends[0] > ends[1]:
			return nil, fmt.Errorf("%.40q: %w", part, errRange)
		case (ends[1]-ends[0])/ends[2] >= maxRatios:
			return nil, fmt.Errorf("%.40q: want at most %d ratios", part, maxRatios)
		}
		for r := ends[0]; r <= ends[1]; r += ends[2] {
			all = append(all, r)
		}
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) > maxRatios {
		return nil, fmt.Errorf("%d ratios: want at most %d", len(all), maxRatios)
	}
	return all, nil
}

func parseRatio(s string) (Ratio, error) {
	whole, part, _ := strings.Cut(s, ".")
	const decimals = 6
	if len(part) <= decimals && len(whole)+len(part) > 0 && len(whole) <= decimals &&
		strings.Trim(whole+part, "0123456789") == "" {
		n, err := strconv.ParseInt("0"+whole+part+strings.Repeat("0", decimals-len(part)), 10, 64)
		if r := Ratio(n); err == nil && r > 0 && r <= maxRatio {
			return r, nil
		}
	}
	return 0, fmt.Errorf("ratio %.40q: %w", s, errRatio)
}

// Of returns this share of a size, rounded down.
func (r Ratio) Of(n device.Size) device.Size {
	high, low := bits.Mul64(uint64(n), uint64(r))
	quotient, _ := bits.Div64(high, low, uint64(Whole)) // cannot overflow: sizes of schedules and ratios are bounded
	return device.Size(quotient)
}

// String formats the ratio with at least one decimal.
func (r Ratio) String() string {
	s := strconv.FormatFloat(r.Float(), 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// Float returns the ratio as a number.
func (r Ratio) Float() float64 { return float64(r) / float64(Whole) }

func (r Ratio) MarshalJSON() ([]byte, error) { return json.Marshal(r.Float()) }

func (r *Ratio) UnmarshalJSON(text []byte) error {
	var x float64
	if err := json.Unmarshal(text, &x); err != nil {
		return err
	}
	*r = Ratio(math.Round(x * float64(Whole)))
	return nil
}

package bench

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// Selection selects workloads in words, as on a command line.
type Selection struct {
	Workloads string // names, separated by commas; a mix may have its sizes behind it: "loguniform:16KiB-1MiB"
	Live      string // numbers of live blocks, separated by commas, for shapes that have such a parameter
	Pairs     int    // that are timed, for shapes that have such a parameter
	Steps     int    // of the training, for shapes that have such a parameter
	Seed      uint64 // of the random numbers
}

// SelectionError is an invalid part of a selection.
type SelectionError struct {
	Part string // "workloads", which has the sizes of mixes too, "live", "pairs", "steps" or "seed"
	Why  error  // the requirement
}

func (e *SelectionError) Error() string { return fmt.Sprintf("bench: %s: %v", e.Part, e.Why) }

// Unwrap returns the reason.
func (e *SelectionError) Unwrap() error { return e.Why }

// Resolve returns the workloads, each with each number of live blocks if it has such a
// parameter. An error is a [*SelectionError].
func (s Selection) Resolve() (all []workload.Workload, err error) {
	lives, err := parseLive(s.Live)
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(s.Workloads, ",") {
		shape, usual, err := named(strings.TrimSpace(name))
		if err != nil {
			return nil, &SelectionError{"workloads", err}
		}
		each := lives
		if shape.Default.Live == 0 {
			each = []int{0}
		}
		for _, live := range each {
			w, err := shape.New(s.params(usual, live))
			if wrong, ok := errors.AsType[*workload.ParamError](err); ok {
				part := wrong.Param
				if part == "least" || part == "most" { // part of the name
					part = "workloads"
				}
				return nil, &SelectionError{part, fmt.Errorf("%s: %w", strings.TrimSpace(name), wrong.Why)}
			}
			all = append(all, w)
		}
	}
	return all, nil
}

// named returns the shape of a name and its default parameters. The name of a mix may end with its
// sizes, as in "uniform:1-16KiB".
func named(name string) (shape workload.Shape, usual workload.Params, err error) {
	name, sizes, sized := strings.Cut(name, ":")
	if shape, err = workload.Lookup(name); err != nil {
		return shape, usual, err
	}
	usual = shape.Default
	if !sized {
		return shape, usual, nil
	}
	if usual.Most == 0 {
		return shape, usual, fmt.Errorf("%s: its sizes are fixed: want no %q behind the name", name, sizes)
	}
	least, most, _ := strings.Cut(sizes, "-")
	var bad error
	if usual.Least, err = device.ParseSize(least); err == nil {
		usual.Most, bad = device.ParseSize(most)
	}
	if err != nil || bad != nil {
		err = fmt.Errorf("%s: sizes %q: want two, as in %q", name, sizes, "16KiB-1MiB")
	}
	return shape, usual, err
}

func (s Selection) params(p workload.Params, live int) workload.Params {
	p.Seed, p.Live = s.Seed, live
	if p.Pairs != 0 {
		p.Pairs = s.Pairs
	}
	if p.Steps != 0 {
		p.Steps = s.Steps
	}
	return p
}

func parseLive(list string) (all []int, err error) {
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			return nil, &SelectionError{"live", fmt.Errorf("%q: want whole numbers, separated by commas", text)}
		}
		all = append(all, n)
	}
	return all, nil
}

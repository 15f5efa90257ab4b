package caching

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/torchenv"
)

// Reduced implements [setting.ReducedConfig]. Omitted from the string:
//
//   - keys that do not affect placement;
//   - garbage_collection_threshold without a bound on the bytes held, and with growing segments;
//   - per_process_memory_fraction of the whole device under the rules of 2.11;
//   - both if the bytes held reach neither, in segments that do not grow;
//   - divisions of intervals in which they change no size;
//   - max_split_size_mb above the largest possible block, in segments that do not grow, and with it
//     max_non_split_rounding_mb;
//   - large_segment_size_mb if no request is served from such a segment.
//
// If the program changes settings, or some hold for a phase, nothing is omitted.
//
// Without private pools the rules of 2.6 and 2.11 differ in the string alone.
func (c Config) Reduced(d setting.Demand) Config {
	s, err := c.settings()
	if err != nil || d.Changes || len(c.Marks()) > 0 {
		return c // New returns the error; a later string keeps some of the keys that have no effect now
	}
	r := Config{Rules: c.Rules, Mended: c.Mended}
	if !d.Pools && s.ties == byAddress {
		r.Rules = Rules211
	}
	s.reduceBounds(d, c.Mended)
	// The bound is in the configuration's own field, which both sets of rules support.
	if s.limited {
		r.MemoryFraction = s.fraction
		if s.fraction == 0 || s.fraction == 1 {
			return c // MemoryFraction cannot express it under all rules
		}
	}
	s.reduceDivisions(d)
	// A growing segment may become one free block that is larger than every request.
	if s.maxSplit == noLimit || !s.expandable && s.maxSplit > s.largestBlock(d) {
		s.maxSplit, s.maxRounding = noLimit, 0
	}
	if !s.expandable && s.maxRounding == 0 && !s.servesMedium(d) {
		s.largeSegment = usualSegment
	}
	// The original compares ages only with a bound, the mended one also with the memory of the device,
	// and neither in growing segments.
	if s.expandable || !s.limited && !c.Mended {
		s.gcThreshold = 0
	}
	r.Conf = s.conf(r.Rules)
	return r
}

// reduceBounds removes the bound and the threshold if the bytes held reach neither. A segment that
// grows is compared with the bound before it is known how much of it is mapped.
func (s *settings) reduceBounds(d setting.Demand, mended bool) {
	if d.Held == 0 || s.expandable || s.limited && d.Held > s.limitAt(d.Capacity) {
		return
	}
	if s.gcThreshold == 0 || !s.limited && !mended || d.Held <= s.barAt(d.Capacity) {
		s.limited, s.gcThreshold = false, 0
	}
}

// reduceDivisions removes the steps of intervals in which they change no size.
func (s *settings) reduceDivisions(d setting.Demand) {
	var matter [intervals]bool
	for _, n := range d.Sizes {
		// Sizes outside these bounds are refused before they are rounded.
		if n > 0 && n <= mostRequest && s.round(n) != device.AlignUp(n, quantum) {
			matter[intervalOf(n)] = true
		}
	}
	for i := range s.divisions {
		if !matter[i] {
			s.divisions[i] = 0
		}
	}
	s.unstepped = matter == [intervals]bool{}
}

// largestBlock returns the largest block there can be in segments that do not grow.
func (s *settings) largestBlock(d setting.Demand) device.Size {
	most := smallSegment
	for _, n := range d.Sizes {
		if n > 0 && n <= mostRequest {
			most = max(most, s.segmentSize(s.round(n)))
		}
	}
	return most
}

// servesMedium reports whether a request is served from a segment that it shares with other large
// ones.
func (s *settings) servesMedium(d setting.Demand) bool {
	for _, n := range d.Sizes {
		if n > 0 && n <= mostRequest {
			if n = s.round(n); !isSmall(n) && n < leastAlone {
				return true
			}
		}
	}
	return false
}

// conf returns the string for the settings, without the bound on the bytes held. Sizes of 2^44 MiB
// and more, which are read as the largest size, still have no effect.
func (s *settings) conf(rules string) string {
	var parts []string
	add := func(key, value string) { parts = append(parts, key+":"+value) }
	mib := func(n device.Size) string { return strconv.FormatUint(uint64(n/device.MiB), 10) }
	if s.expandable {
		add("expandable_segments", "True")
	}
	if s.gcThreshold != 0 {
		add("garbage_collection_threshold", strconv.FormatFloat(s.gcThreshold, 'g', -1, 64))
	}
	if s.largeSegment != usualSegment && rules != Rules26 {
		add(keyLargeSegment, mib(s.largeSegment))
	}
	// The default of the rounding is the size of a large segment.
	if s.maxRounding != 0 && s.maxRounding != s.largeSegment {
		add(keyRounding, mib(s.maxRounding))
	}
	if s.maxSplit != noLimit {
		add(keyMaxSplit, mib(s.maxSplit))
	}
	if !s.unstepped {
		steps := make([]string, intervals)
		for i, n := range s.divisions {
			steps[i] = fmt.Sprintf("%d:%d", uint64(1)<<i, uint64(n))
		}
		add(keyDivisions, "["+strings.Join(steps, ",")+"]")
	}
	return strings.Join(parts, ",")
}

// Unbound implements [setting.UnboundConfig]. The memory of the device determines the range of a
// growing segment, the bound of a memory fraction and, mended, the threshold of garbage collection.
func (c Config) Unbound() bool {
	s, err := c.settings()
	return err == nil && len(c.Marks()) == 0 && !s.expandable && !s.limited && (s.gcThreshold == 0 || !c.Mended)
}

// Exports implements [setting.ExportedConfig]. PyTorch reads the string from the environment, and
// settings of a phase from calls. It ignores blanks, so they are left out. A call sets the fraction
// in every release. Expandable segments came with 2.1, keys for the fraction and for the size of
// large segments with 2.11.
//
// Source: pytorch.org/docs/stable/notes/cuda.html, "Optimizing memory usage with
// PYTORCH_ALLOC_CONF".
func (c Config) Exports() []setting.Export {
	plan, err := c.plan()
	if err != nil || c.Mended {
		return nil
	}
	s := plan.base
	text, _, _ := splitConf(c.Conf) // plan has checked it
	for i, item := range plan.phase.items {
		plan.phase.items[i] = withoutBlanks(item)
	}
	text, calls := plan.phase.calls(withoutBlanks(text))
	from := ""
	switch {
	case s.fractionSet || s.largeSegment != usualSegment:
		from = Rules211
	case s.grew:
		from = "2.1"
	}
	e := torchenv.Export(text, from)
	e.Calls = calls
	if c.MemoryFraction != 0 && !s.fractionSet {
		share := strconv.FormatFloat(c.MemoryFraction, 'g', -1, 64)
		e.Options = []string{keyFraction + "=" + share}
		e.Python = []string{"torch.cuda.set_per_process_memory_fraction(" + share + ")"}
	}
	return []setting.Export{e}
}

func withoutBlanks(text string) string { return strings.Join(strings.Fields(text), "") }

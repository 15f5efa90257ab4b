package caching

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/nearest"
)

// Keys that are named in more than one place.
const (
	keyMaxSplit     = "max_split_size_mb"
	keyRounding     = "max_non_split_rounding_mb"
	keyLargeSegment = "large_segment_size_mb"
	keyDivisions    = "roundup_power2_divisions"
	keyFraction     = "per_process_memory_fraction"
	keyExpandable   = "expandable_segments"
)

// confKey is a key of the string and how its value is read.
type confKey struct {
	name  string
	later bool // not in 2.6
	read  func(*confReader) error
}

// confKeys are the keys of the string. Keys read by flag and similar functions do not affect
// placement: they concern host memory, locks, graph capture and error reports.
var confKeys = []confKey{
	{keyMaxSplit, false, (*confReader).maxSplit},
	{keyRounding, false, (*confReader).maxRounding},
	{"garbage_collection_threshold", false, (*confReader).threshold},
	{keyDivisions, false, (*confReader).divisions},
	{keyExpandable, false, (*confReader).expandable},
	{"backend", false, (*confReader).backend},
	{"release_lock_on_cudamalloc", false, (*confReader).flag},
	{"release_lock_on_hipmalloc", false, (*confReader).flag},
	{"pinned_use_cuda_host_register", false, (*confReader).flag},
	{"pinned_use_hip_host_register", false, (*confReader).flag},
	{"pinned_use_background_threads", false, (*confReader).flag},
	{"pinned_num_register_threads", false, (*confReader).threads},
	{keyLargeSegment, true, (*confReader).largeSegment},
	{keyFraction, true, (*confReader).fraction},
	{"graph_capture_record_stream_reuse", true, (*confReader).flag},
	{"pinned_reserve_segment_size_mb", true, (*confReader).pinnedSegment},
	{"pinned_free_catch_all", true, (*confReader).flag},
	{"throw_on_cudamalloc_oom", true, (*confReader).flag},
	{"expandable_segments_reserve", true, (*confReader).reserve},
	{"expandable_segments_reserve_by_class", true, (*confReader).reserves},
}

// mostRegisterThreads is the most that PyTorch takes to register memory of the host.
const mostRegisterThreads = 128

// confReader reads the string from left to right. Each key has a function that parses, checks and
// stores its value. Comparisons with other keys are made at the end.
type confReader struct {
	tokens   []string // words, and the separators , : [ ]
	rules    string
	set      settings
	key      string     // the key that is being read
	atLeasts []confSize // sizes to compare with a segment of the large pool
}

// confSize is a size in MiB that a key was given.
type confSize struct {
	key string
	mib uint64
}

// parseConf parses the string by the rules of a version.
func parseConf(conf, rules string) (settings, error) {
	return settings{
		largeSegment: usualSegment, ties: ties(rules),
		lastBegunFirst: rules != Rules26, oneStreamCaptures: rules == Rules213,
		borrowsFirst: rules != Rules26, borrowsGrowing: rules == Rules26, wholeBlocks: rules != Rules26,
	}.parse(conf, rules)
}

// parse returns the settings after the string was parsed by the rules of a version. Each time it
// resets max_split_size_mb, roundup_power2_divisions and garbage_collection_threshold.
func (s settings) parse(conf, rules string) (settings, error) {
	s.maxSplit, s.divisions, s.gcThreshold = noLimit, [intervals]device.Size{}, 0
	return s.read(conf, rules)
}

// read returns the settings after the string was read. Keys that it does not have keep their
// values.
//
// Keys may stand in any order: 2.11 reads large_segment_size_mb first, and nothing else depends on
// another key. A key that is given twice is read twice, and the later value wins; divisions
// overwrite only the intervals that they name. The error names the key, the value and the expected
// values.
func (s settings) read(conf, rules string) (settings, error) {
	r := confReader{tokens: confTokens(conf, rules), rules: rules, set: s}
	// A trailing comma is legal, as in 2.6; any other superfluous comma is an error.
	for len(r.tokens) > 0 {
		r.key = r.next()
		i := slices.IndexFunc(confKeys, func(k confKey) bool { return k.name == r.key && !(k.later && rules == Rules26) })
		if i < 0 {
			return settings{}, r.unknown()
		}
		if !r.accept(":") {
			return settings{}, fmt.Errorf("%s: want a colon and a value", r.key)
		}
		if err := confKeys[i].read(&r); err != nil {
			return settings{}, err
		}
		if len(r.tokens) > 0 && !r.accept(",") {
			return settings{}, fmt.Errorf("%s: %q after its value: want a comma", r.key, r.tokens[0])
		}
	}
	if !r.set.roundingSet {
		r.set.maxRounding = r.set.largeSegment
	}
	r.set.grew = r.set.grew || r.set.expandable
	r.set.unstepped = !slices.ContainsFunc(r.set.divisions[:], func(d device.Size) bool { return d > 1 })
	return r.set, r.checkSizes()
}

// confTokens splits the string into tokens. Blanks are ignored, even within a word; in 2.11 all
// white space is.
func confTokens(conf, rules string) (tokens []string) {
	blanks := " "
	if rules != Rules26 {
		blanks = " \t\n\v\f\r"
	}
	conf = strings.Map(func(c rune) rune {
		if strings.ContainsRune(blanks, c) {
			return -1
		}
		return c
	}, conf)
	for conf != "" {
		n := strings.IndexAny(conf, ",:[]")
		switch n {
		case -1:
			n = len(conf)
		case 0:
			n = 1
		}
		tokens = append(tokens, conf[:n])
		conf = conf[n:]
	}
	return tokens
}

// next takes the next token, "" at the end.
func (r *confReader) next() (token string) {
	if len(r.tokens) > 0 {
		token, r.tokens = r.tokens[0], r.tokens[1:]
	}
	return token
}

// accept takes the next token if it equals the given one, and reports whether it does.
func (r *confReader) accept(token string) bool {
	if len(r.tokens) == 0 || r.tokens[0] != token {
		return false
	}
	r.tokens = r.tokens[1:]
	return true
}

// wrong returns the error of a value that is not among the expected ones.
func (r *confReader) wrong(value, want string) error {
	if value == "" {
		return fmt.Errorf("%s: no value: want %s", r.key, want)
	}
	return fmt.Errorf("%s:%s: want %s", r.key, value, want)
}

// unknown returns the error of an unknown key.
func (r *confReader) unknown() error {
	var names []string
	for _, k := range confKeys {
		switch {
		case !k.later || r.rules != Rules26:
			names = append(names, k.name)
		case k.name == r.key:
			return fmt.Errorf("%s: rules %s have no such key", r.key, r.rules)
		}
	}
	slices.Sort(names)
	return fmt.Errorf("unknown key %q: %s", r.key, nearest.Want(r.key, names))
}

// number takes a whole number. In 2.6 it has 31 bits. PyTorch also accepts a sign and ignores text
// after the digits, so -1 is large and 128GB is 128 MiB; both are refused here.
func (r *confReader) number(want string) (n uint64, err error) {
	value := r.next()
	size := 64
	if r.rules == Rules26 {
		size = 31
	}
	n, err = strconv.ParseUint(value, 10, size)
	if err != nil {
		return 0, r.wrong(value, fmt.Sprintf("%s, a whole number below 2^%d", want, size))
	}
	return n, nil
}

// mebibytes parses a number of MiB. A number that is too large becomes the largest size.
func (r *confReader) mebibytes() (uint64, error) {
	n, err := r.number("a number of MiB")
	return min(n, uint64(^device.Size(0)/device.MiB)), err
}

// real takes a number with a fraction. Exponents and hexadecimal digits are numbers to PyTorch too.
func (r *confReader) real(want string, legal func(float64) bool) (float64, error) {
	value := r.next()
	x, err := strconv.ParseFloat(value, 64)
	if err != nil || strings.Contains(value, "_") || !legal(x) {
		return 0, r.wrong(value, want)
	}
	return x, nil
}

// truth takes True or False.
func (r *confReader) truth() (bool, error) {
	value := r.next()
	if value != "True" && value != "False" {
		return false, r.wrong(value, "True or False")
	}
	return value == "True", nil
}

// maxSplit reads the size from which blocks are not split. A value below the size of a segment
// would leave no block to split.
func (r *confReader) maxSplit() error {
	n, err := r.mebibytes()
	r.set.maxSplit = device.Size(n) * device.MiB
	r.atLeasts = append(r.atLeasts, confSize{r.key, n})
	return err
}

// maxRounding reads the most bytes by which an unsplittable block may exceed its request.
func (r *confReader) maxRounding() error {
	n, err := r.mebibytes()
	r.set.maxRounding, r.set.roundingSet = device.Size(n)*device.MiB, true
	r.atLeasts = append(r.atLeasts, confSize{r.key, n})
	return err
}

// largeSegment reads the size of segments of the large pool. It must exceed leastAlone, because
// requests from that size on get a segment each.
func (r *confReader) largeSegment() error {
	n, err := r.mebibytes()
	if err == nil && n <= uint64(leastAlone/device.MiB) {
		return r.wrong(strconv.FormatUint(n, 10), fmt.Sprintf("more than %d", leastAlone/device.MiB))
	}
	r.set.largeSegment = device.Size(n) * device.MiB
	return err
}

// checkSizes compares sizes with the segment size of the large pool: greater in 2.6, at least equal
// in 2.11.
func (r *confReader) checkSizes() error {
	least, want := uint64(r.set.largeSegment/device.MiB), "at least %d, the size of a large segment"
	if r.rules == Rules26 {
		least++
		want = "at least %d, more than a large segment"
	}
	for _, v := range r.atLeasts {
		if v.mib < least {
			return fmt.Errorf("%s:%d: want "+want, v.key, v.mib, least)
		}
	}
	return nil
}

// threshold reads the share of the bound above which old segments are released.
func (r *confReader) threshold() (err error) {
	r.set.gcThreshold, err = r.real("a share above 0 and below 1", func(x float64) bool { return x > 0 && x < 1 })
	return err
}

// fraction reads the share of the device that may be held. PyTorch also accepts 0, with which every
// request fails.
func (r *confReader) fraction() error {
	x, err := r.real("a share from 0 to 1", func(x float64) bool { return x >= 0 && x <= 1 })
	r.set.bound(x, r.rules)
	r.set.fractionSet = true
	return err
}

// expandable reads whether segments grow.
func (r *confReader) expandable() (err error) {
	r.set.expandable, err = r.truth()
	return err
}

// backend reads the name of the allocator. PyTorch's other backend is the driver's pool.
func (r *confReader) backend() error {
	switch value := r.next(); value {
	case "native":
		return nil
	case "cudaMallocAsync":
		return r.wrong(value, "native; the driver's pool is the strategy async")
	default:
		return r.wrong(value, "native, or the strategy async for cudaMallocAsync")
	}
}

// flag reads a boolean that has no effect here.
func (r *confReader) flag() error {
	_, err := r.truth()
	return err
}

// threads reads the number of threads that register host memory.
func (r *confReader) threads() error {
	n, err := r.number("a power of two")
	if err == nil && (bits.OnesCount64(n) != 1 || n > mostRegisterThreads) {
		return r.wrong(strconv.FormatUint(n, 10), fmt.Sprintf("a power of two up to %d", mostRegisterThreads))
	}
	return err
}

// pinnedSegment reads the size of segments of the host's memory.
func (r *confReader) pinnedSegment() error {
	n, err := r.number("a number of MiB")
	if err == nil && n == 0 {
		return r.wrong("0", "more than 0")
	}
	return err
}

// reserve reads how much address space a segment that grows takes: a share of the device, or GiB
// with a G. PyTorch ignores other values with a warning, so every value is accepted. These settings
// are newer than the rules of 2.11 and have no effect.
func (r *confReader) reserve() error {
	switch value := r.next(); value {
	case "", ",", ":", "[", "]":
		return r.wrong(value, "a share, or a number of GiB with a G")
	}
	return nil
}

// reserves reads a list of reserves by the name of a class of streams.
func (r *confReader) reserves() error {
	return r.list(func(string) error { return r.reserve() })
}

// list reads a list in brackets of names, each with a colon and a value, which read takes. The
// list may be empty and may end with a comma.
func (r *confReader) list(read func(name string) error) error {
	if !r.accept("[") {
		return r.wrong(strings.Join(r.tokens[:min(1, len(r.tokens))], ""), "a list in brackets")
	}
	for !r.accept("]") {
		name := r.next()
		if name == "" {
			return fmt.Errorf("%s: want a closing bracket", r.key)
		}
		if !r.accept(":") {
			return fmt.Errorf("%s: %q: want a colon and a value", r.key, name)
		}
		if err := read(name); err != nil {
			return err
		}
		if len(r.tokens) > 0 && r.tokens[0] != "]" && !r.accept(",") {
			return fmt.Errorf("%s: %q: want a comma or a closing bracket", r.key, r.tokens[0])
		}
	}
	return nil
}

// divisions reads the number of steps from one power of two to the next: one number for all sizes,
// or a list of numbers by size in MiB.
//
// Entry K of the list is for requests from K MiB to below 2K MiB. The first entry also covers all
// smaller sizes. Sizes between two entries have no steps. The mark > is for sizes above the last
// entry, and in 2.6 for that entry too.
func (r *confReader) divisions() error {
	if len(r.tokens) == 0 || r.tokens[0] != "[" {
		n, err := r.steps(1)
		for i := range r.set.divisions {
			r.set.divisions[i] = n
		}
		return err
	}
	last, first := 0, true
	return r.list(func(name string) error {
		n, err := r.steps(0)
		if err != nil {
			return err
		}
		if name == ">" {
			from := last
			if r.rules != Rules26 {
				from++
			}
			for i := from; i < intervals; i++ {
				r.set.divisions[i] = n
			}
			return nil
		}
		mib, err := strconv.ParseUint(name, 10, 64)
		if err != nil || bits.OnesCount64(mib) != 1 {
			return r.wrong(name, "a power of two in MiB, or > for all above")
		}
		last = min(bits.Len64(mib)-1, intervals-1)
		for i := 0; first && i < last; i++ {
			r.set.divisions[i] = n
		}
		r.set.divisions[last], first = n, false
		return nil
	})
}

// steps takes a power of two, or, in a list, zero.
func (r *confReader) steps(least uint64) (device.Size, error) {
	n, err := r.number("a power of two")
	if err == nil && (bits.OnesCount64(n) > 1 || n < least) {
		want := "a power of two"
		if least == 0 {
			want += ", or 0 for no steps"
		}
		return 0, r.wrong(strconv.FormatUint(n, 10), want)
	}
	return device.Size(n), err
}

package caching

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
)

// defaults are the settings of an empty string.
func defaults(rules string) settings {
	return settings{
		maxSplit: ^device.Size(0), maxRounding: 20 * device.MiB, largeSegment: 20 * device.MiB, unstepped: true,
		lastBegunFirst: rules == Rules211, borrowsFirst: rules == Rules211, borrowsGrowing: rules == Rules26,
		wholeBlocks: rules == Rules211,
	}
}

// every returns divisions that are the same in all intervals.
func every(n device.Size) (d [intervals]device.Size) {
	for i := range d {
		d[i] = n
	}
	return d
}

func TestConfSetsWhatItNames(t *testing.T) {
	const mib = device.MiB
	for conf, change := range map[string]func(*settings){
		"":                                  func(*settings) {},
		"  ":                                func(*settings) {},
		"max_split_size_mb:21":              func(s *settings) { s.maxSplit = 21 * mib },
		"max_split_size_mb : 6 4 ,":         func(s *settings) { s.maxSplit = 64 * mib },
		"max_split_size_mb:2147483647":      func(s *settings) { s.maxSplit = 2147483647 * mib },
		"max_non_split_rounding_mb:48":      func(s *settings) { s.maxRounding, s.roundingSet = 48*mib, true },
		"garbage_collection_threshold:0.8":  func(s *settings) { s.gcThreshold = 0.8 },
		"garbage_collection_threshold:5e-1": func(s *settings) { s.gcThreshold = 0.5 },
		"expandable_segments:True":          func(s *settings) { s.expandable, s.grew = true, true },
		"expandable_segments:True,expandable_segments:False": func(*settings) {},
		"backend:native":                             func(*settings) {},
		"release_lock_on_cudamalloc:True":            func(*settings) {},
		"release_lock_on_hipmalloc:False":            func(*settings) {},
		"pinned_use_cuda_host_register:True":         func(*settings) {},
		"pinned_use_hip_host_register:True":          func(*settings) {},
		"pinned_use_background_threads:True":         func(*settings) {},
		"pinned_num_register_threads:128":            func(*settings) {},
		"roundup_power2_divisions:8":                 func(s *settings) { s.divisions, s.unstepped = every(8), false },
		"roundup_power2_divisions:1":                 func(s *settings) { s.divisions = every(1) },
		"roundup_power2_divisions:[]":                func(*settings) {},
		"roundup_power2_divisions:[65536:4,]":        func(s *settings) { s.divisions, s.unstepped = every(4), false },
		"roundup_power2_divisions:2147483648":        nil,
		"max_split_size_mb:40,backend:native,":       func(s *settings) { s.maxSplit = 40 * mib },
		"max_split_size_mb:40,max_split_size_mb:30 ": func(s *settings) { s.maxSplit = 30 * mib },
	} {
		for _, rules := range []string{Rules26, Rules211} {
			want := defaults(rules)
			if change != nil {
				change(&want)
			} else if rules == Rules26 {
				continue // more than 31 bits
			} else {
				want.divisions, want.unstepped = every(1<<31), false
			}
			got, err := parseConf(conf, rules)
			require.NoError(t, err, "%q under %s", conf, rules)
			require.Equal(t, want, got, "%q under %s", conf, rules)
		}
	}
}

func TestConfSetsWhatIsNewIn211(t *testing.T) {
	const mib = device.MiB
	for conf, change := range map[string]func(*settings){
		"max_split_size_mb:20":         func(s *settings) { s.maxSplit = 20 * mib },
		"max_non_split_rounding_mb:20": func(s *settings) { s.roundingSet = true },
		"large_segment_size_mb:11":     func(s *settings) { s.largeSegment, s.maxRounding = 11*mib, 11*mib },
		// The size of a segment is read first, wherever it stands.
		"max_split_size_mb:15,large_segment_size_mb:15": func(s *settings) {
			s.largeSegment, s.maxSplit, s.maxRounding = 15*mib, 15*mib, 15*mib
		},
		"max_non_split_rounding_mb:40,large_segment_size_mb:12": func(s *settings) {
			s.largeSegment, s.maxRounding, s.roundingSet = 12*mib, 40*mib, true
		},
		"large_segment_size_mb:64": func(s *settings) {
			s.largeSegment, s.maxRounding = 64*mib, 64*mib
		},
		"max_split_size_mb:18446744073709551615": func(s *settings) {
			s.maxSplit = ^device.Size(0) &^ (mib - 1)
		},
		"max_split_size_mb:\t30\n":      func(s *settings) { s.maxSplit = 30 * mib },
		"per_process_memory_fraction:0": func(s *settings) { s.limited, s.fractionSet = true, true },
		"per_process_memory_fraction:0.25": func(s *settings) {
			s.limited, s.fractionSet, s.fraction = true, true, 0.25
		},
		"per_process_memory_fraction:1.0":                   func(s *settings) { s.fractionSet, s.fraction = true, 1 },
		"graph_capture_record_stream_reuse:True":            func(*settings) {},
		"pinned_reserve_segment_size_mb:1":                  func(*settings) {},
		"pinned_free_catch_all:False":                       func(*settings) {},
		"throw_on_cudamalloc_oom:True":                      func(*settings) {},
		"expandable_segments_reserve:40G":                   func(*settings) {},
		"expandable_segments_reserve_by_class:[a:0.5,b:1G]": func(*settings) {},
	} {
		want := defaults(Rules211)
		change(&want)
		got, err := parseConf(conf, Rules211)
		require.NoError(t, err, conf)
		require.Equal(t, want, got, conf)

		if strings.Contains(conf, "max_") {
			continue
		}
		_, err = parseConf(conf, Rules26)
		require.ErrorContains(t, err, "rules 2.6 have no such key", conf)
	}
}

func TestConfSpreadsDivisions(t *testing.T) {
	for conf, want := range map[string]struct{ old, now [intervals]device.Size }{
		// The first entry holds below too, what is not named has none, and > in 2.6 also overwrites the
		// last entry.
		"[8:0,64:4,>:0]": {
			[intervals]device.Size{},
			[intervals]device.Size{6: 4},
		},
		"[256:1,512:2,1024:4,>:8]": {
			[intervals]device.Size{1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 8, 8, 8, 8, 8, 8},
			[intervals]device.Size{1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 8, 8, 8, 8},
		},
		"[2:8,16:2]": {[intervals]device.Size{8, 8, 0, 0, 2}, [intervals]device.Size{8, 8, 0, 0, 2}},
		// Without an entry before it, > begins after the first interval in 2.11.
		"[>:4]": {every(4), [intervals]device.Size{0, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}},
		// An entry above the last interval is that interval.
		"[4:2,9223372036854775808:16]": {
			[intervals]device.Size{2, 2, 2, 15: 16}, [intervals]device.Size{2, 2, 2, 15: 16},
		},
		// A second list overwrites only what it names.
		"4,roundup_power2_divisions:[2:8]": {
			[intervals]device.Size{8, 8, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4},
			[intervals]device.Size{8, 8, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4},
		},
	} {
		for rules, want := range map[string][intervals]device.Size{Rules26: want.old, Rules211: want.now} {
			got, err := parseConf("roundup_power2_divisions:"+conf, rules)
			require.NoError(t, err, "%s under %s", conf, rules)
			require.Equal(t, want, got.divisions, "%s under %s", conf, rules)
		}
	}
}

// refusedConfs are wrong settings, each with its reason.
var refusedConfs = map[string]string{
	",":                       `unknown key ",": want one of backend, expandable_segments,`,
	"foo:1":                   `unknown key "foo": want one of`,
	"max_split_size_mb:30,,":  `unknown key ","`,
	"max_split_size_mb":       "max_split_size_mb: want a colon and a value",
	"max_split_size_mb=40":    `unknown key "max_split_size_mb=40"`,
	"max_split_size_mb,40":    "max_split_size_mb: want a colon and a value",
	"max_split_size_mb:":      "max_split_size_mb: no value: want a number of MiB",
	"max_split_size_mb:,":     "max_split_size_mb:,: want a number of MiB",
	"max_split_size_mb:[32]":  "max_split_size_mb:[: want a number of MiB",
	"max_split_size_mb:40:50": `max_split_size_mb: ":" after its value: want a comma`,
	"max_split_size_mb:19":    "max_split_size_mb:19: want at least 2",
	"max_split_size_mb:-1": "max_split_size_mb:-1: want a number of MiB, a whole " +
		"number below 2^",
	"max_split_size_mb:64MiB":                   "max_split_size_mb:64MiB: want a number of MiB",
	"max_split_size_mb:99999999999999999999":    "max_split_size_mb:99999999999999999999: want a number of MiB",
	"max_split_size_mb:10,max_split_size_mb:40": "max_split_size_mb:10: want at least",
	"max_non_split_rounding_mb:0":               "max_non_split_rounding_mb:0: want at least 2",
	"max_non_split_rounding_mb:2e1":             "max_non_split_rounding_mb:2e1: want a number of MiB",
	"garbage_collection_threshold:0": "garbage_collection_threshold:0: want a share above 0 " +
		"and below 1",
	"garbage_collection_threshold:1.0": "garbage_collection_threshold:1.0: want a share above 0 " +
		"and below 1",
	"garbage_collection_threshold:nan":     "garbage_collection_threshold:nan: want a share",
	"garbage_collection_threshold:inf":     "garbage_collection_threshold:inf: want a share",
	"garbage_collection_threshold:80%":     "garbage_collection_threshold:80%: want a share",
	"garbage_collection_threshold:1e999":   "garbage_collection_threshold:1e999: want a share",
	"garbage_collection_threshold:0x_1p-1": "garbage_collection_threshold:0x_1p-1: want a share",
	"expandable_segments:true":             "expandable_segments:true: want True or False",
	"expandable_segments:1":                "expandable_segments:1: want True or False",
	"backend:cudaMallocAsync": "backend:cudaMallocAsync: want native; the driver's pool is " +
		"the strategy async",
	"backend:other": "backend:other: want native, or the strategy async for " +
		"cudaMallocAsync",
	"release_lock_on_cudamalloc:yes":  "release_lock_on_cudamalloc:yes: want True or False",
	"pinned_num_register_threads:3":   "pinned_num_register_threads:3: want a power of two up to 128",
	"pinned_num_register_threads:256": "pinned_num_register_threads:256: want a power of two up to 128",
	"pinned_num_register_threads:0":   "pinned_num_register_threads:0: want a power of two",
	"roundup_power2_divisions:0":      "roundup_power2_divisions:0: want a power of two",
	"roundup_power2_divisions:3":      "roundup_power2_divisions:3: want a power of two",
	"roundup_power2_divisions:[4:3]": "roundup_power2_divisions:3: want a power of two, or 0 " +
		"for no steps",
	"roundup_power2_divisions:[3:4]": "roundup_power2_divisions:3: want a power of two in MiB, or > " +
		"for all above",
	"roundup_power2_divisions:[0:4]":     "roundup_power2_divisions:0: want a power of two in MiB",
	"roundup_power2_divisions:[x:4]":     "roundup_power2_divisions:x: want a power of two in MiB",
	"roundup_power2_divisions:[4:2":      "roundup_power2_divisions: want a closing bracket",
	"roundup_power2_divisions:[":         "roundup_power2_divisions: want a closing bracket",
	"roundup_power2_divisions:[4:":       "roundup_power2_divisions: no value: want a power of two",
	"roundup_power2_divisions:[4]":       `roundup_power2_divisions: "4": want a colon and a value`,
	"roundup_power2_divisions:[4:2:8:4]": `roundup_power2_divisions: ":": want a comma or a closing bracket`,
	"roundup_power2_divisions:[,]":       `roundup_power2_divisions: ",": want a colon and a value`,
	"roundup_power2_divisions:4]":        `roundup_power2_divisions: "]" after its value: want a comma`,
	"roundup_power2_divisions:[18446744073709551616:4]": "roundup_power2_divisions:18446744073709551616: want a power " +
		"of two in MiB",
}

func TestConfIsRefusedWithAReason(t *testing.T) {
	for conf, why := range refusedConfs {
		for _, rules := range []string{Rules26, Rules211} {
			_, err := Config{Conf: conf, Rules: rules}.WithDefaults()
			require.ErrorContains(t, err, "caching: conf: "+why, "%q under %s", conf, rules)
		}
	}
	for conf, why := range map[string]string{
		"large_segment_size_mb:10": "large_segment_size_mb:10: want more than 10",
		"max_split_size_mb:20,large_segment_size_mb:25": "max_split_size_mb:20: want at least 25, the size of a " +
			"large segment",
		"large_segment_size_mb:30,max_non_split_rounding_mb:29": "max_non_split_rounding_mb:29: want at least 30",
		"per_process_memory_fraction:1.1":                       "per_process_memory_fraction:1.1: want a share from 0 to 1",
		"per_process_memory_fraction:nan":                       "per_process_memory_fraction:nan: want a share from 0 to 1",
		"pinned_reserve_segment_size_mb:0":                      "pinned_reserve_segment_size_mb:0: want more than 0",
		"expandable_segments_reserve:":                          "expandable_segments_reserve: no value: want a share",
		"expandable_segments_reserve_by_class:0.5": "expandable_segments_reserve_by_class:0.5: want a list " +
			"in brackets",
		"expandable_segments_reserve_by_class:": "expandable_segments_reserve_by_class: no value: want a " +
			"list in brackets",
		"expandable_segments_reserve_by_class:[a:]": "expandable_segments_reserve_by_class:]: want a share",
	} {
		_, err := parseConf(conf, Rules211)
		require.ErrorContains(t, err, why, conf)
	}
	// What only the one version takes.
	for _, conf := range []string{"max_split_size_mb:20", "max_split_size_mb:2147483648", "max_split_size_mb:\t30",
		"roundup_power2_divisions:[4:2147483648]"} {
		_, err := parseConf(conf, Rules26)
		require.ErrorContains(t, err, "want", conf)
		_, err = parseConf(conf, Rules211)
		require.NoError(t, err, conf)
	}
}

// canonical returns a string that means the settings.
func canonical(s settings) string {
	all := []string{
		fmt.Sprintf("max_non_split_rounding_mb:%d", s.maxRounding/device.MiB),
		fmt.Sprintf("expandable_segments:%s", map[bool]string{false: "False", true: "True"}[s.expandable]),
	}
	if s.maxSplit != ^device.Size(0) {
		all = append(all, fmt.Sprintf("max_split_size_mb:%d", s.maxSplit/device.MiB))
	}
	if s.gcThreshold != 0 {
		all = append(all, fmt.Sprintf("garbage_collection_threshold:%x", s.gcThreshold))
	}
	if s.largeSegment != usualSegment {
		all = append(all, fmt.Sprintf("large_segment_size_mb:%d", s.largeSegment/device.MiB))
	}
	if s.fractionSet {
		all = append(all, fmt.Sprintf("per_process_memory_fraction:%x", s.fraction))
	}
	var steps []string
	for i, n := range s.divisions {
		steps = append(steps, fmt.Sprintf("%d:%d", 1<<i, n))
	}
	return strings.Join(append(all, "roundup_power2_divisions:["+strings.Join(steps, ",")+"]"), ",")
}

func FuzzConf(f *testing.F) {
	for _, conf := range []string{
		"", "max_split_size_mb:128,garbage_collection_threshold:0.8", "expandable_segments:True,",
		"roundup_power2_divisions:[256:1,512:2,>:8]", "large_segment_size_mb:64,max_split_size_mb:64",
		"backend:native,per_process_memory_fraction:0.5", "max_non_split_rounding_mb:21 , roundup_power2_divisions:4",
	} {
		f.Add(conf, false)
		f.Add(conf, true)
	}
	f.Fuzz(func(t *testing.T, conf string, old bool) {
		rules := Rules211
		if old {
			rules = Rules26
		}
		s, err := parseConf(conf, rules)
		if err != nil {
			return
		}
		if old && s.maxRounding == usualSegment {
			s.maxRounding = 21 * device.MiB // the default, which cannot be written
		}
		s.roundingSet = true // the string below sets it
		again, err := parseConf(canonical(s), rules)
		require.NoError(t, err, canonical(s))
		require.Equal(t, s, again)
	})
}

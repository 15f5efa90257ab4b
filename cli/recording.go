package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/study/postmortem"
	"github.com/vramyard/vramyard/harness/study/verify"
	"github.com/vramyard/vramyard/harness/study/whatif"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/harness/trace/torch"
	"github.com/vramyard/vramyard/internal/strictjson"
	"github.com/vramyard/vramyard/internal/torchenv"
	"github.com/vramyard/vramyard/strategies/caching"
)

// recordings holds the data of recorded runs that files contain beside the traces.
type recordings struct {
	catalogue        setting.Catalogue
	allocationStacks                                 // nil: stacks are not kept
	runs             map[trace.Source]compare.Origin // allocator and device
	family           func(name string) bool          // whether recorded settings of this strategy are used
	whole            bool                            // traces are read into memory
}

// open opens a trace and keeps the recorded run.
func (r *recordings) open(path string, o formats.Options, stdin io.Reader) (trace.Source, error) {
	open := openSource
	if r.whole {
		open = func(path string, o formats.Options, stdin io.Reader) (trace.Source, error) {
			return openTrace(path, o, stdin)
		}
	}
	src, of, err := openRecording(open, path, o, stdin)
	if err != nil {
		return nil, err
	}
	h := src.Head().Header
	run := compare.Origin{Card: recordedCard(h)}
	if config := settingsOf(h); config != nil && r.family(cachingName) {
		a, err := recordedAllocator(r.catalogue, config, of.Timeline, "")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		run.Setup = a.setup
	}
	if r.runs == nil {
		r.runs = map[trace.Source]compare.Origin{}
	}
	r.runs[src] = run
	if r.allocationStacks != nil && of.Snapshot != nil {
		r.allocationStacks[src] = of.Stacks()
	}
	return src, nil
}

// openRecording opens a trace and returns the recording of a snapshot; the fields of any other file
// are nil.
func openRecording(open opener[trace.Source], path string, o formats.Options, stdin io.Reader) (trace.Source,
	*postmortem.Recording, error) {
	of := &postmortem.Recording{}
	o.Snapshot = func(s *torch.Snapshot, c *torch.Timeline) { of.Snapshot, of.Timeline = s, c }
	src, err := open(path, o, stdin)
	return src, of, err
}

// settingsOf returns the recorded settings of PyTorch's allocator, or nil. The configuration in a
// counterexample does not count: it belongs to the checked strategy.
func settingsOf(h trace.Header) []byte {
	config, ok := h.Get(torch.KeyConfig)
	if _, recorded := h.Get(torch.KeyPeak); !ok || !recorded {
		return nil
	}
	return []byte(config)
}

// recordedCard returns the capacity of the recorded device, as far as a refusal shows it; 0: not
// known.
func recordedCard(h trace.Header) device.Size {
	text, _ := h.Get(torch.KeyCapacity)
	n, _ := strconv.ParseUint(text, 10, 62) // 0 if it is no number
	return device.Size(n)
}

// allocator is the strategy that stands for a recorded allocator.
type allocator struct {
	setup   setting.Setup  // with the recorded settings; no name: not known
	target  *verify.Target // the same for a comparison with the recording; nil: not known
	judged  *verify.Result // of the comparison; nil: the file has no addresses to compare
	unknown string         // why the settings are not understood; empty: they are
}

// backendAsync is the key and the value with which PyTorch takes its memory from the driver's pool.
const backendAsync = "backend:cudaMallocAsync"

// recordedAllocator returns the strategy that models PyTorch's allocator with recorded settings. Of
// the sets of rules it takes the best one at predicting the recording, if timeline is not nil.
// Among equal ones the rules of the release win; snapshots do not record it, so it may be "".
func recordedAllocator(
	c setting.Catalogue, config []byte, timeline *torch.Timeline, release string,
) (a allocator, err error) {
	var settings caching.Config
	if err := strictjson.Decode(config, &settings); err != nil {
		a.unknown = err.Error()
		return a, nil
	}
	if strings.Contains(strings.ReplaceAll(settings.Conf, " ", ""), backendAsync) {
		a.setup, err = c.Lookup("async:keep", nil)
		return a, err
	}
	history := sync.OnceValues(func() (*verify.History, error) { return historyOf(timeline) })
	for _, rules := range rulesOf(release) {
		settings.Rules = rules
		config, err := json.Marshal(settings)
		if err != nil {
			return a, err
		}
		setup, err := c.Lookup(cachingName, config)
		if err != nil {
			if rules == caching.Rules211 {
				a.unknown = err.Error()
			}
			continue
		}
		target, err := cachingTarget(c, string(config))
		if err != nil {
			return a, err
		}
		judged, err := judge(history, target)
		if err != nil {
			return a, err
		}
		if a.setup.Name == "" || judged != nil && (a.judged == nil || judged.Predicted > a.judged.Predicted) {
			a.setup, a.target, a.judged = setup, target, judged
		}
		if a.judged == nil || a.judged.Predicted == a.judged.Allocs {
			break
		}
	}
	return a, nil
}

// rulesOf lists the rules of PyTorch's allocator in the order in which a recording is compared with
// them, first the ones of its release. The release may be unknown.
func rulesOf(release string) []string {
	all := []string{caching.Rules211, caching.Rules213, caching.Rules212, caching.Rules26}
	if release == "" {
		return all
	}
	var own string
	for _, r := range caching.RuleSets() {
		if own == "" || !torchenv.Older(release, r.From) {
			own = r.Name
		}
	}
	return append([]string{own}, slices.DeleteFunc(all, func(r string) bool { return r == own })...)
}

// recordedRules returns the rules of a release of PyTorch or, if it is "", of a recorded allocator;
// "" if they are unknown.
func recordedRules(rec *whatif.Recorded, release string) string {
	of, ok := rec.Setup.Config.(caching.Config)
	if ok && release == "" {
		return of.Rules
	}
	if release = cmp.Or(release, rec.Version); release == "" {
		return ""
	}
	return rulesOf(release)[0]
}

// underRules returns the settings of a grid under rules of PyTorch, without those that the rules do
// not have. If they are "", it returns the grid.
func underRules(c setting.Catalogue, grid []setting.Setup, rules string) ([]setting.Setup, error) {
	if rules == "" {
		return grid, nil
	}
	var all []setting.Setup
	for _, s := range grid {
		config, ok := s.Config.(caching.Config)
		if ok && config.Rules != rules {
			config.Rules = rules
			text, err := json.Marshal(config)
			if err != nil {
				return nil, err
			}
			if s, err = c.Lookup(s.Name, text); err != nil {
				continue
			}
		}
		all = append(all, s)
	}
	return all, nil
}

// judge verifies a strategy against a recording. The result is nil without a recording.
func judge(history func() (*verify.History, error), target *verify.Target) (*verify.Result, error) {
	h, err := history()
	if h == nil || err != nil {
		return nil, err
	}
	return verify.Run(h, target)
}

// historyOf returns the history of a snapshot, nil if it has no allocations to predict.
func historyOf(timeline *torch.Timeline) (*verify.History, error) {
	if timeline == nil {
		return nil, nil
	}
	h, err := verify.FromTimeline(timeline)
	if errors.Is(err, verify.ErrNoHistory) {
		return nil, nil
	}
	return h, err
}

package sweep

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/remat/grid"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/whatif"
	"github.com/vramyard/vramyard/internal/nearest"
	"github.com/vramyard/vramyard/internal/strictyaml"
)

// Study is a list of values for each axis of a sweep.
type Study struct {
	Traces     []string        // how each trace is opened: a file, a pattern or a name; empty: the study is of logs
	Logs       []string        // op logs of training steps, likewise; empty: the study is of traces
	Remat      grid.Options    // how logs run: settings, heuristics, ladders and ratios
	Strategies []setting.Setup // with their settings
	Devices    []Device        // at least one
	Searches   []Search        // at least one
	FreeAt     replay.FreeAt   // when strategies without streams get a delayed free
	Learn      string          // trace that strategies plan by; empty: none
	Seed       uint64          // of the assignment of cells to shards
}

// Device is a device of a study.
type Device struct {
	Name     string      // as [sim.ParseDevice] reads it; empty: the default device
	Capacity device.Size // of the measuring replay in bytes; 0: the recorded card's, or ample
	Config   sim.Config  // without its capacity
}

// Search is the work of a cell.
type Search string

// The searches. Each has the figures of a measuring replay.
const (
	Minimum Search = "minimum" // and the minimum capacity, as compare searches it
	Quick   Search = "quick"   // and the minimum capacity from fewer capacities, without fragmentation
	Replay  Search = "replay"  // nothing else
)

// Searches returns every search.
func Searches() []Search { return []Search{Minimum, Quick, Replay} }

var (
	errStudy = errors.New("want a mapping with the keys traces, or logs, and strategies")
	errTexts = errors.New("want a list of texts")

	errNoTraces     = errors.New("the keys traces and logs are missing: want one of them")
	errCounting     = errors.New("counting always runs with logs, and never with traces: leave it out")
	errBoth         = errors.New("want traces or logs, each in a study of its own")
	errNoStrategies = errors.New("the key strategies is missing")
	errSeed         = errors.New("want a number from 0 to 18446744073709551615")
	errScalar       = errors.New("want a text")
)

// limits bound a study.
var limits = strictyaml.Limits{Bytes: 1 << 18, Depth: 16}

// ReadStudy reads a study from YAML, with the strategies of a catalogue. Its errors name line and
// column.
//
//	traces: [cpu_unet_train, "runs/*.pickle", w1-live1000] # or logs: ["steps/*.log.gz"]
//	strategies:                  # as in a grid of whatif
//	  - bfc
//	  - strategy: caching
//	    conf: ["", "expandable_segments:True"]
//	devices: [sim, sim:a100-80g] # default: sim
//	searches: [minimum]          # default: minimum
//	free_at: completed           # default
//	learn: train.csv             # default: no strategy has a forecast
//	seed: 1                      # default
//	remat: {budgets: ["0.3:1.0:0.1"]} # how logs run; default: as the command remat
func ReadStudy(r io.Reader, catalogue setting.Catalogue) (*Study, error) {
	root, err := strictyaml.Read(r, limits)
	if err != nil {
		return nil, err
	}
	if root == nil {
		return nil, errStudy
	}
	pairs, err := strictyaml.Pairs(root, errStudy)
	if err != nil {
		return nil, err
	}
	s := &Study{FreeAt: replay.AtCompleted, Seed: 1, Remat: grid.Usual()}
	for _, p := range pairs {
		if err := s.set(p.Key, p.Value, catalogue); err != nil {
			return nil, err
		}
	}
	switch {
	case len(s.Traces) == 0 && len(s.Logs) == 0:
		return nil, strictyaml.At(root, errNoTraces)
	case len(s.Traces) > 0 && len(s.Logs) > 0:
		return nil, strictyaml.At(root, errBoth)
	case len(s.Strategies) == 0:
		return nil, strictyaml.At(root, errNoStrategies)
	}
	if err := s.checkKeys(pairs); err != nil {
		return nil, err
	}
	if s.Devices == nil {
		s.Devices = []Device{{Name: defaultDevice}}
	}
	if s.Searches == nil {
		s.Searches = []Search{Minimum}
	}
	return s, nil
}

// checkKeys refuses keys that the subjects of the study have no use for.
func (s *Study) checkKeys(pairs []strictyaml.Pair) error {
	for _, p := range pairs {
		switch name := p.Key.Value; {
		case len(s.Logs) > 0 && slices.Contains(keysOfTraces, name):
			return strictyaml.At(p.Key, fmt.Errorf("%s is for traces, and the study has logs", name))
		case len(s.Logs) == 0 && name == "remat":
			return strictyaml.At(p.Key, errors.New("remat is for logs, and the study has traces"))
		}
	}
	return nil
}

// keysOfTraces are the keys of a study that logs have no use for.
var keysOfTraces = []string{"devices", "searches", "free_at", "learn"}

// defaultDevice is the name of the default device.
const defaultDevice = "sim"

// set sets the value of a key.
func (s *Study) set(key, value *yaml.Node, catalogue setting.Catalogue) (err error) {
	switch key.Value {
	case "traces":
		s.Traces, err = texts(value, func(text string) (string, error) { return text, nil })
	case "logs":
		s.Logs, err = texts(value, func(text string) (string, error) { return text, nil })
	case "remat":
		err = s.setRemat(value)
	case "strategies":
		for _, one := range value.Content {
			if one.Value == grid.Counting {
				return strictyaml.At(one, errCounting)
			}
		}
		s.Strategies, err = whatif.GridOf(value, catalogue)
		if err == nil {
			s.Strategies, err = distinct(s.Strategies, catalogue)
		}
	case "devices":
		s.Devices, err = texts(value, ParseDevice)
	case "searches":
		s.Searches, err = texts(value, parseSearch)
	case "free_at":
		s.FreeAt, err = text(value, replay.ParseFreeAt)
	case "learn":
		s.Learn, err = text(value, func(text string) (string, error) { return text, nil })
	case "seed":
		s.Seed, err = text(value, func(text string) (uint64, error) {
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				err = fmt.Errorf("seed %q: %w", text, errSeed)
			}
			return n, err
		})
	default:
		keys := append([]string{"traces", "logs", "strategies", "remat", "seed"}, keysOfTraces...)
		err = strictyaml.At(key, fmt.Errorf("unknown field %q: %s", key.Value, nearest.Want(key.Value, keys)))
	}
	return err
}

// distinct drops repeated setups, and adds to each name the settings that differ from its preset's,
// so that rows of one strategy differ in every table.
func distinct(setups []setting.Setup, catalogue setting.Catalogue) (all []setting.Setup, err error) {
	for _, s := range setups {
		preset, err := catalogue.Lookup(s.Name, nil)
		if err != nil { // it needs settings
			all = append(all, s)
			continue
		}
		own, err := settings(s)
		if err != nil {
			return nil, err
		}
		usual, err := settings(preset)
		if err != nil {
			return nil, err
		}
		maps.DeleteFunc(own, func(name string, value json.RawMessage) bool { return bytes.Equal(usual[name], value) })
		if len(own) > 0 {
			text, err := json.Marshal(own) // keys are sorted
			if err != nil {
				return nil, err
			}
			s.Name += string(text)
		}
		if !slices.ContainsFunc(all, func(o setting.Setup) bool { return o.Name == s.Name }) {
			all = append(all, s)
		}
	}
	return all, nil
}

// settings returns the fields of a configuration.
func settings(s setting.Setup) (fields map[string]json.RawMessage, err error) {
	text, err := json.Marshal(s.Config)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", s.Name, err)
	}
	return fields, err
}

// text reads a scalar.
func text[T any](n *yaml.Node, parse func(string) (T, error)) (v T, err error) {
	if n.Kind != yaml.ScalarNode || n.Value == "" {
		return v, strictyaml.At(n, errScalar)
	}
	if v, err = parse(n.Value); err != nil {
		err = strictyaml.At(n, err)
	}
	return v, err
}

// texts reads a list of scalars without repetitions.
func texts[T any](n *yaml.Node, parse func(string) (T, error)) (all []T, err error) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return nil, strictyaml.At(n, errTexts)
	}
	var seen []string
	for _, one := range n.Content {
		if slices.Contains(seen, one.Value) {
			return nil, strictyaml.At(one, fmt.Errorf("%q is given twice", one.Value))
		}
		v, err := text(one, parse)
		if err != nil {
			return nil, err
		}
		all, seen = append(all, v), append(seen, one.Value)
	}
	return all, nil
}

// ParseDevice reads a device of a study, such as sim:a100-80g.
func ParseDevice(name string) (Device, error) {
	c, err := sim.ParseDevice(name)
	d := Device{Name: name, Capacity: c.Capacity, Config: c}
	d.Config.Capacity = 0
	return d, err
}

func parseSearch(name string) (Search, error) {
	var names []string
	for _, s := range Searches() {
		names = append(names, string(s))
	}
	if !slices.Contains(names, name) {
		return "", fmt.Errorf("search %q: %s", name, nearest.Want(name, names))
	}
	return Search(name), nil
}

package vectors

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/vramyard/vramyard/device"
)

// torchManifest is the manifest of PyTorch's vectors.
type torchManifest struct {
	Releases []Release
	Vectors  []torchEntry
}

// Release is a release of PyTorch that replayed the traces.
type Release struct {
	Name  string   // as in "2.6.0"
	Rules string   // the rule set that reproduces it
	Lacks []string // the statistics that it does not keep, each as the beginning of a line
	// Refused maps a trace to the reason why the release does not replay it.
	Refused map[string]string `json:"-"`
	// Answers maps a trace to the rule set or release whose answers it gives, itself if no earlier
	// one gives them.
	Answers map[string]string `json:"-"`
}

// torchEntry is one entry of that manifest.
type torchEntry struct {
	Name, Generator, Settings, Trace string
	Capacity                         device.Size              `json:"capacity_mib"`
	Fraction                         float64                  `json:"memory_fraction"` // null if not set
	TraceSHA256                      string                   `json:"trace_sha256"`
	Expected                         map[string]torchExpected // by rule set, or by release
	Answers                          map[string]string        // by release: the key of Expected
	Refused                          map[string]string        // by release: the reason
}

// torchExpected are the answers of one rule set.
type torchExpected struct {
	File, SHA256 string
	Counts       struct{ Requests, OOMs int }
}

// torchConfig are the options that are fields of the strategy's configuration.
type torchConfig struct {
	Conf     string  `json:"conf,omitempty"`
	Rules    string  `json:"rules"`
	Fraction float64 `json:"memory_fraction,omitempty"`
}

// torchRules are the PyTorch versions of the rule sets.
var torchRules = []string{"2.6", "2.11"}

// Torch returns the vectors of PyTorch's caching allocator, one for each rule set of a trace.
func Torch() ([]Vector, error) {
	var m torchManifest
	root, err := readManifest("torch", &m)
	if err != nil {
		return nil, err
	}
	var list []Vector
	for _, e := range m.Vectors {
		for _, rules := range torchRules {
			if _, ok := e.Expected[rules]; !ok {
				continue
			}
			v, err := e.vector(root, rules, rules)
			if err != nil {
				return nil, fmt.Errorf("torch/%s: %w", e.Name, err)
			}
			list = append(list, v)
		}
	}
	return list, nil
}

// TorchTraces returns every trace of PyTorch once, with the answers of any release.
func TorchTraces() ([]Vector, error) {
	var m torchManifest
	root, err := readManifest("torch", &m)
	if err != nil {
		return nil, err
	}
	var list []Vector
	for _, e := range m.Vectors {
		key := slices.Min(slices.Collect(maps.Keys(e.Expected)))
		v, err := e.vector(root, key, torchRules[0])
		if err != nil {
			return nil, fmt.Errorf("torch/%s: %w", e.Name, err)
		}
		list = append(list, v)
	}
	return list, nil
}

// Releases returns the releases of PyTorch that replayed the traces, and their vectors. Answers
// that an earlier release under the same rules or the rule set itself gave are left out.
func Releases() ([]Release, []Vector, error) {
	var m torchManifest
	root, err := readManifest("torch", &m)
	if err != nil {
		return nil, nil, err
	}
	var list []Vector
	for i := range m.Releases {
		r := &m.Releases[i]
		r.Refused, r.Answers = map[string]string{}, map[string]string{}
		for _, e := range m.Vectors {
			if why, ok := e.Refused[r.Name]; ok {
				r.Refused[e.Name] = why
				continue
			}
			key := e.Answers[r.Name]
			r.Answers[e.Name] = key
			given := key == r.Rules || slices.ContainsFunc(m.Releases[:i], func(earlier Release) bool {
				return earlier.Rules == r.Rules && earlier.Answers[e.Name] == key
			})
			if given {
				continue
			}
			v, err := e.vector(root, key, r.Rules)
			if err != nil {
				return nil, nil, fmt.Errorf("torch/%s: %w", e.Name, err)
			}
			v.Kind, v.Lacks = "torch_"+r.Name, r.Lacks
			list = append(list, v)
		}
	}
	return m.Releases, list, nil
}

// vector returns the answers under a key to the trace, with the configuration of a rule set.
func (e torchEntry) vector(root, key, rules string) (Vector, error) {
	want := e.Expected[key]
	config, err := json.Marshal(torchConfig{Conf: e.Settings, Rules: rules, Fraction: e.Fraction})
	if err != nil {
		return Vector{}, err
	}
	const page = 2 * device.MiB // the device charges a segment in multiples of it
	simJSON, err := json.Marshal(simConfig{Capacity: e.Capacity * device.MiB, Round: page, Charge: page})
	return Vector{
		Suite: "torch", Kind: "torch_" + key, Name: e.Name, Purpose: e.Generator, Strategy: "caching",
		Config: config, Sim: simJSON, Allocs: want.Counts.Requests, Refused: want.Counts.OOMs,
		traceFile:    file{filepath.Join(root, e.Trace), e.TraceSHA256},
		expectedFile: file{filepath.Join(root, want.File), want.SHA256},
	}, err
}

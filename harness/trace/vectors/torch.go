package vectors

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/vramyard/vramyard/device"
)

// torchManifest is the manifest of PyTorch's vectors.
type torchManifest struct{ Vectors []torchEntry }

// torchEntry is one entry of that manifest.
type torchEntry struct {
	Name, Generator, Settings, Trace string
	Capacity                         device.Size              `json:"capacity_mib"`
	Fraction                         float64                  `json:"memory_fraction"` // null if not set
	TraceSHA256                      string                   `json:"trace_sha256"`
	Expected                         map[string]torchExpected // by rule set
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
			v, err := e.vector(root, rules)
			if err != nil {
				return nil, fmt.Errorf("torch/%s: %w", e.Name, err)
			}
			list = append(list, v)
		}
	}
	return list, nil
}

func (e torchEntry) vector(root, rules string) (Vector, error) {
	want := e.Expected[rules]
	config, err := json.Marshal(torchConfig{Conf: e.Settings, Rules: rules, Fraction: e.Fraction})
	if err != nil {
		return Vector{}, err
	}
	const page = 2 * device.MiB // the device charges a segment in multiples of it
	simJSON, err := json.Marshal(simConfig{Capacity: e.Capacity * device.MiB, Round: page, Charge: page})
	return Vector{
		Suite: "torch", Kind: "torch_" + rules, Name: e.Name, Purpose: e.Generator, Strategy: "caching",
		Config: config, Sim: simJSON, Allocs: want.Counts.Requests, Refused: want.Counts.OOMs,
		traceFile:    file{filepath.Join(root, e.Trace), e.TraceSHA256},
		expectedFile: file{filepath.Join(root, want.File), want.SHA256},
	}, err
}

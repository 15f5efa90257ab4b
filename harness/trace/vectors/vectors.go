package vectors

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/trace"
)

// Vector is a trace and the original allocator's answers.
type Vector struct {
	Suite    string          // "bfc", "xdl", "torch" or "rmm": the directory, and unless "rmm" the dialect
	Kind     string          // the original: bfc, buddy, slab, slab_buddy, blaze_slab, torch_2.6, rmm_pool and so on
	Name     string          // unique within the kind
	Purpose  string          // purpose of the vector
	Strategy string          // the strategy that must give the same answers
	Variant  string          // bfc: year of the original; otherwise empty
	SameIn   []string        // bfc: other variants that give the same answers and the same final state
	Config   json.RawMessage // the strategy's configuration, fields that differ from the zero value
	Sim      json.RawMessage // the simulated device, likewise
	Allocs   int             // number of allocations in the trace
	Refused  int             // allocations that the original refused for lack of memory
	Lacks    []string        // torch: statistics that the release does not keep, as the beginning of a line

	traceFile, expectedFile file
}

// file is a compressed file and the SHA-256 of its content.
type file struct{ path, sum string }

// ID returns a name that is unique among all vectors and fit for a subtest.
func (v Vector) ID() string { return v.Kind + "/" + v.Name }

// Trace reads the vector's trace and verifies its SHA-256.
func (v Vector) Trace() (*trace.Trace, error) {
	o := trace.Options{Dialect: v.Suite}
	if v.Suite == "rmm" {
		o.Dialect = ""
	}
	t, err := trace.Open(v.traceFile.path, o)
	if err != nil {
		return nil, err
	}
	if t.Header.Hash != v.traceFile.sum {
		return nil, fmt.Errorf("%s: SHA-256 %s: the manifest says %s", v.traceFile.path, t.Header.Hash, v.traceFile.sum)
	}
	return t, nil
}

// WriteTrace writes the text of the vector's trace, for a program that reads it.
func (v Vector) WriteTrace(path string) error {
	text, err := v.traceFile.read()
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

// Expected returns the lines of the original's output without comments and blank lines. It verifies
// the SHA-256 of the file.
func (v Vector) Expected() ([]string, error) {
	text, err := v.expectedFile.read()
	if err != nil {
		return nil, err
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		if line != "" && line[0] != '#' {
			lines = append(lines, line)
		}
	}
	return lines, nil
}

// read decompresses a file and verifies its hash.
func (f file) read() ([]byte, error) {
	packed, err := os.ReadFile(f.path)
	if err != nil {
		return nil, err
	}
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	text, err := z.DecodeAll(packed, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}
	sum := sha256.Sum256(text)
	if got := hex.EncodeToString(sum[:]); got != f.sum {
		return nil, fmt.Errorf("%s: SHA-256 %s: the manifest says %s", f.path, got, f.sum)
	}
	return text, nil
}

// All returns every vector of BFC, XDL, PyTorch and RMM, each in the order of its manifest. It
// reads only the manifests.
func All() (all []Vector, err error) {
	for _, suite := range []func() ([]Vector, error){BFC, XDL, Torch, RMM} {
		list, err := suite()
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// Of returns the vectors that a strategy must reproduce.
func Of(strategy string) ([]Vector, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	var list []Vector
	for _, v := range all {
		if v.Strategy == strategy {
			list = append(list, v)
		}
	}
	if list == nil {
		return nil, fmt.Errorf("vectors: none for strategy %q", strategy)
	}
	return list, nil
}

// bfcEntry is one entry of BFC's manifest.
type bfcEntry struct {
	Name, Variant, Purpose, Trace, Expected string
	Options                                 bfcOptions
	Allocs, OOMs                            int
	TraceSHA256                             string            `json:"trace_sha256"`
	ExpectedSHA256                          string            `json:"expected_sha256"`
	Others                                  map[string]string `json:"other_variants"`
}

// bfcOptions are the original's options in that manifest.
type bfcOptions struct {
	bfcConfig
	DeviceCapacity device.Size `json:"device_capacity"`
	FailAbove      device.Size `json:"suballoc_fail_above"`
	Round          device.Size `json:"suballoc_round"`
	Gap            device.Size `json:"suballoc_gap"`
	Policy         int         `json:"policy"`
}

// bfcConfig are the options that are fields of the strategy's configuration.
type bfcConfig struct {
	Variant           string      `json:"variant,omitempty"`
	Limit             device.Size `json:"limit,omitempty"`
	AllowGrowth       bool        `json:"allow_growth,omitempty"`
	GarbageCollection bool        `json:"garbage_collection,omitempty"`
	Fraction          float64     `json:"fragmentation_fraction,omitempty"`
	CoalesceRegions   bool        `json:"coalesce_regions,omitempty"`
	Timing            bool        `json:"timing,omitempty"`
	Spatial           bool        `json:"spatial,omitempty"`
}

// simConfig is [sim.Config] without the fields at their default.
type simConfig struct {
	Capacity  device.Size `json:"capacity,omitempty"`
	Policy    sim.Policy  `json:"policy,omitempty"`
	Round     device.Size `json:"round,omitempty"`
	Charge    device.Size `json:"charge,omitempty"`
	Gap       device.Size `json:"gap,omitempty"`
	FailAbove device.Size `json:"fail_above,omitempty"`
}

// bfcPolicies are the placement policies by their number in the manifest.
var bfcPolicies = []sim.Policy{"", sim.Bump, sim.TopDown}

// BFC returns the vectors of TensorFlow's BFC.
func BFC() ([]Vector, error) {
	var entries []bfcEntry
	root, err := readManifest("bfc", &entries)
	if err != nil {
		return nil, err
	}
	var list []Vector
	for _, e := range entries {
		v, err := e.vector(root)
		if err != nil {
			return nil, fmt.Errorf("bfc/%s: %w", e.Name, err)
		}
		list = append(list, v)
	}
	return list, nil
}

func (e bfcEntry) vector(root string) (Vector, error) {
	o := e.Options
	if o.Policy < 0 || o.Policy >= len(bfcPolicies) {
		return Vector{}, fmt.Errorf("policy %d: want 0, 1 or 2", o.Policy)
	}
	o.bfcConfig.Variant = e.Variant
	config, err := json.Marshal(o.bfcConfig)
	if err != nil {
		return Vector{}, err
	}
	simJSON, err := json.Marshal(simConfig{
		Capacity: o.DeviceCapacity, Policy: bfcPolicies[o.Policy], Round: o.Round, Gap: o.Gap, FailAbove: o.FailAbove,
	})
	v := Vector{
		Suite: "bfc", Kind: "bfc", Name: e.Name, Purpose: e.Purpose, Strategy: "bfc", Variant: e.Variant,
		Config: config, Sim: simJSON, Allocs: e.Allocs, Refused: e.OOMs,
		traceFile:    file{filepath.Join(root, e.Trace), e.TraceSHA256},
		expectedFile: file{filepath.Join(root, e.Expected), e.ExpectedSHA256},
	}
	for _, other := range []string{"2016", "2024", "2026"} {
		if e.Others[other] == "identical" {
			v.SameIn = append(v.SameIn, other)
		}
	}
	return v, err
}

// xdlManifest is XDL's manifest.
type xdlManifest struct{ Vectors []xdlEntry }

// xdlEntry is one entry of XDL's manifest.
type xdlEntry struct {
	Kind, Name, Description, Trace, Out string
	Capacity                            device.Size
	TraceSHA256                         string `json:"trace_sha256"`
	OutSHA256                           string `json:"out_sha256"`
	Params                              xdlConfig
	Metrics                             struct{ Allocs, OOM int }
}

// xdlConfig are the parameters of an original, under the names of the fields of the strategies'
// configurations. The size classes of blaze_slab are fixed and omitted.
type xdlConfig struct {
	Compat  string      `json:"compat"`
	Region  device.Size `json:"region_bytes,omitempty"`
	Block   device.Size `json:"block_bytes,omitempty"`
	Segment int         `json:"segments,omitempty"`
	Unit    device.Size `json:"unit_bytes,omitempty"`
}

// xdlKinds maps each original to the strategy and mode that reproduce it.
var xdlKinds = map[string]struct{ strategy, compat string }{
	"buddy":      {"buddy", "xdl"},
	"slab":       {"slab", "xdl"},
	"slab_buddy": {"slabbuddy", "xdl"},
	"blaze_slab": {"slab", "blaze"},
}

// XDL returns the vectors of XDL's allocators.
func XDL() ([]Vector, error) {
	var m xdlManifest
	root, err := readManifest("xdl", &m)
	if err != nil {
		return nil, err
	}
	var list []Vector
	for _, e := range m.Vectors {
		v, err := e.vector(root)
		if err != nil {
			return nil, fmt.Errorf("xdl/%s/%s: %w", e.Kind, e.Name, err)
		}
		list = append(list, v)
	}
	return list, nil
}

func (e xdlEntry) vector(root string) (Vector, error) {
	kind, ok := xdlKinds[e.Kind]
	if !ok {
		return Vector{}, fmt.Errorf("unknown kind %q", e.Kind)
	}
	e.Params.Compat = kind.compat
	config, err := json.Marshal(e.Params)
	if err != nil {
		return Vector{}, err
	}
	// A region keeps its own size, but the device charges whole granules.
	simJSON, err := json.Marshal(simConfig{Capacity: e.Capacity, Round: 256, Charge: 2 * device.MiB})
	return Vector{
		Suite: "xdl", Kind: e.Kind, Name: e.Name, Purpose: e.Description, Strategy: kind.strategy,
		Config: config, Sim: simJSON, Allocs: e.Metrics.Allocs, Refused: e.Metrics.OOM,
		traceFile:    file{filepath.Join(root, filepath.FromSlash(e.Trace)), e.TraceSHA256},
		expectedFile: file{filepath.Join(root, filepath.FromSlash(e.Out)), e.OutSHA256},
	}, err
}

// readManifest decodes the manifest of a suite and returns the directory of the suite.
func readManifest(name string, to any) (root string, err error) {
	if root, err = suite(name); err != nil {
		return "", err
	}
	path := filepath.Join(root, manifest)
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal(text, to); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return root, nil
}

const manifest = "manifest.json"

// suite returns the directory of a suite. Tests run in the directory of their package, so the
// repository's root is above it. A program built elsewhere finds it from this source file.
func suite(name string) (string, error) {
	var starts []string
	if wd, err := os.Getwd(); err == nil {
		starts = append(starts, wd)
	}
	if _, source, _, ok := runtime.Caller(0); ok && filepath.IsAbs(source) {
		starts = append(starts, filepath.Dir(source))
	}
	for _, dir := range starts {
		for {
			root := filepath.Join(dir, "testdata", "vectors", name)
			if _, err := os.Stat(filepath.Join(root, manifest)); err == nil {
				return root, nil
			}
			up := filepath.Dir(dir)
			if up == dir {
				break
			}
			dir = up
		}
	}
	return "", errors.New("testdata/vectors/" + name + ": not found above the working directory: " +
		"the vectors need a checkout of the repository")
}

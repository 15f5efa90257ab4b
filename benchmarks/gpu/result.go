package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/fileio"
)

// schema names the form of a [Result].
const schema = "vramyard-gpu/1"

// Result is the result of a run, the file result.json. Sizes are bytes and times nanoseconds unless
// their names say otherwise.
type Result struct {
	Schema  string  `json:"schema"`  // its form
	Started string  `json:"started"` // UTC, RFC 3339
	Seconds float64 `json:"seconds"` // the whole run
	// Commit is the commit of the repository from which the bundle was built, with "-dirty" if files
	// differed.
	Commit  string  `json:"commit"`
	Machine Machine `json:"machine"` // where it ran
	// StandIn means that the driver was the stand-in of the tests: nothing was measured on a card.
	StandIn bool   `json:"stand_in"`
	Parts   []Part `json:"parts"` // in the order in which they ran

	Suite       *Suite     `json:"suite,omitempty"`       // of the part suite
	Timing      *Timing    `json:"timing,omitempty"`      // of the part timing
	Conformance []Checked  `json:"conformance,omitempty"` // by strategy
	Training    *Training  `json:"training,omitempty"`    // of the part training
	Snapshots   []Snapshot `json:"snapshots,omitempty"`   // that were recorded
}

// Machine is where it ran.
type Machine struct {
	System     string      `json:"system"`             // operating system and architecture
	Cores      int         `json:"cores"`              // that the program may use
	GPU        string      `json:"gpu"`                // the driver's name of the GPU; "" without one
	Memory     device.Size `json:"memory_bytes"`       // of the GPU
	Capability string      `json:"capability"`         // compute capability
	CUDA       string      `json:"cuda"`               // version that the driver is for
	Driver     string      `json:"driver"`             // version of the driver; "" if unknown
	NoGPU      string      `json:"no_gpu,omitempty"`   // why there is no GPU
	Python     string      `json:"python"`             // version; "" without Python
	Torch      string      `json:"torch"`              // version of PyTorch; "" without it
	TorchCUDA  string      `json:"torch_cuda"`         // version of CUDA that PyTorch was built for
	NoTorch    string      `json:"no_torch,omitempty"` // why PyTorch cannot be used
}

// State is the outcome of a part.
type State string

// The states.
const (
	Held    State = "held"    // it ran to its end without a finding
	Failed  State = "failed"  // it found a fault
	Late    State = "late"    // its time limit ended it
	Skipped State = "skipped" // a requirement is missing
)

// Part is one part of a run.
type Part struct {
	Name    string  `json:"name"`             // as the program names it
	State   State   `json:"state"`            // how it ended
	Reason  string  `json:"reason,omitempty"` // one line, unless it held
	Seconds float64 `json:"seconds"`          // how long it took
}

// Suite is the result of the conformance suite of devices.
type Suite struct {
	Passed int `json:"passed"` // tests and their parts
	Failed int `json:"failed"` // likewise
	// Left lists skipped tests, with their reasons.
	Left []string `json:"left_out"`
}

// Checked is a strategy on the GPU.
type Checked struct {
	Strategy  string `json:"strategy"`         // name and preset
	State     State  `json:"state"`            // how it ended
	Sequences int    `json:"sequences"`        // of calls, for which every invariant held
	Reason    string `json:"reason,omitempty"` // one line, unless it held
}

// Training is a model trained on each strategy.
type Training struct {
	Steps  int    `json:"steps"`      // of each training without poison
	Repeat bool   `json:"repeats"`    // PyTorch's own allocator gave the same losses twice
	First  string `json:"first_loss"` // hexadecimal: losses are compared bit for bit
	Last   string `json:"last_loss"`  // likewise
	Runs   []Run  `json:"runs"`       // in their order
}

// Run is a training on one strategy.
type Run struct {
	Strategy string      `json:"strategy"`            // name and preset
	Poison   bool        `json:"poison"`              // freed memory was filled
	Steps    int         `json:"steps"`               // that were trained
	State    State       `json:"state"`               // how it ended
	Reason   string      `json:"reason,omitempty"`    // one line, unless it held
	Blocks   uint64      `json:"blocks"`              // granted
	Peak     device.Size `json:"peak_reserved_bytes"` // most held of the GPU
	Filled   uint64      `json:"poison_filled"`       // blocks that were filled when they were freed
	// pieces of freed memory that were checked at their reuse
	Compared uint64 `json:"poison_compared"`
	Stale    uint64 `json:"poison_violations"` // frees whose memory was written afterwards
	Blind    bool   `json:"poison_blind"`      // memory was mapped at two addresses, so the rest was not compared
}

// Snapshot is a memory snapshot of PyTorch.
type Snapshot struct {
	File    string `json:"file"`   // in the folder of the result
	What    string `json:"what"`   // the program, in a line
	Steps   int    `json:"steps"`  // of the program
	Seed    int    `json:"seed"`   // of weights and inputs
	Events  int    `json:"events"` // in the history
	Frames  bool   `json:"frames"` // has the calls of each allocation
	Bytes   int64  `json:"bytes"`  // of the file
	SHA256  string `json:"sha256"` // of the file
	Settled string `json:"verify"` // last line of "vramyard verify"
}

// held reports whether every part ran and passed.
func (r *Result) held() bool {
	for _, p := range r.Parts {
		if p.State != Held {
			return false
		}
	}
	return len(r.Parts) == len(parts())
}

// part returns the part with a name, or nil if it was not reached.
func (r *Result) part(name string) *Part {
	for i := range r.Parts {
		if r.Parts[i].Name == name {
			return &r.Parts[i]
		}
	}
	return nil
}

// slug returns the name of the result in the repository: card and day, in small letters.
func (r *Result) slug() string {
	clean := func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			return c
		}
		return '-'
	}
	name := strings.TrimPrefix(strings.ToLower(r.Machine.GPU), "nvidia ")
	day, _, _ := strings.Cut(r.Started, "T")
	return strings.Map(clean, name+"-"+day)
}

func (r *Result) write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// save writes the result to a file, whole or not at all.
func (r *Result) save(path string) error { return fileio.Write(path, nil, r.write) }

// errResult means that a file is not a result.
var errResult = errors.New("is no " + schema)

// readResult reads the file of a result. Fields that are not known are errors.
func readResult(path string) (*Result, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d := json.NewDecoder(f)
	d.DisallowUnknownFields()
	var r Result
	if err := d.Decode(&r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if r.Schema != schema || r.Started == "" || len(r.Parts) == 0 {
		return nil, fmt.Errorf("%s: %w", path, errResult)
	}
	return &r, nil
}

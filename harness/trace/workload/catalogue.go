package workload

import (
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/nearest"
)

// Limits of a workload.
const (
	// MaxLive is the maximum number of live blocks, and so of slots.
	MaxLive = 1 << (64 - sizeBits)
	// MaxSize is the maximum size of a block: half of the range of an [Op], a round number.
	MaxSize = 512 * device.GiB
	// MaxOperations is the maximum number of operations. As a [Program] they take 1 GiB.
	MaxOperations = 1 << 27
)

// Params are the parameters of a workload. Parameters that a shape does not have are zero.
type Params struct {
	Seed  uint64      `json:"seed"`                  // seed of the random numbers
	Live  int         `json:"live,omitempty"`        // blocks live at once
	Pairs int         `json:"pairs,omitempty"`       // free and allocation pairs in the churn
	Steps int         `json:"steps,omitempty"`       // training steps
	Least device.Size `json:"least_bytes,omitempty"` // minimum size, in bytes
	Most  device.Size `json:"most_bytes,omitempty"`  // maximum size, in bytes
}

// param is a parameter's name, value and limit.
type param struct {
	name  string
	value uint64
	max   uint64 // maximum; the minimum is 1, and 0 for a seed
}

// list returns all parameters. A negative number becomes a huge one, which exceeds every maximum.
func (p Params) list() []param {
	return []param{
		{"live", uint64(p.Live), MaxLive},
		{"pairs", uint64(p.Pairs), MaxOperations / 2},
		{"steps", uint64(p.Steps), MaxOperations / trainPerStep},
		{"least", uint64(p.Least), uint64(MaxSize)},
		{"most", uint64(p.Most), uint64(MaxSize)},
		{"seed", p.Seed, ^uint64(0)},
	}
}

// ParamError is an invalid parameter of a workload.
type ParamError struct {
	Shape string // name of the shape
	Param string // name of the parameter in lower case: "live"
	Why   error  // expected values
}

func (e *ParamError) Error() string {
	return fmt.Sprintf("workload %s: %s: %v", e.Shape, e.Param, e.Why)
}

// Unwrap returns the reason.
func (e *ParamError) Unwrap() error { return e.Why }

// Shape is a kind of workload: an entry of the catalogue.
type Shape struct {
	Name    string // lower case, for command lines and tables
	Doc     string // description in one line
	Default Params // parameters of the published figures; zero for parameters that the shape lacks

	powers bool // sizes are bounded by powers of two
	parts  func(Params) Parts
	run    func(Params, *sink)
}

// The parameters of the published figures.
const (
	defaultSeed  = 42
	defaultLive  = 1_000
	defaultPairs = 1_000_000
)

// All returns the catalogue. The default sizes of the mixes are the sizes for which XDL's slab
// (uniform) and its Blaze slab (loguniform) were made.
func All() []Shape {
	base := Params{Seed: defaultSeed, Live: defaultLive, Pairs: defaultPairs}
	between := func(least, most device.Size) Params {
		p := base
		p.Least, p.Most = least, most
		return p
	}
	return []Shape{
		{
			Name:    "w1",
			Doc:     "steady state, a random block is replaced; sizes around 128 KiB, 256 B to 64 MiB",
			Default: base,
			parts:   steadyParts,
			run:     steady(steadyParts, func(Params) Sizes { return steadySizes() }),
		},
		{
			Name:    "w2",
			Doc:     "a transformer in training: activations in stack order beside lasting weights",
			Default: Params{Seed: defaultSeed, Steps: 300},
			parts:   trainParts,
			run:     train,
		},
		{
			Name:    "w3",
			Doc:     "256 buffers that grow: the new block is allocated before the old one is freed",
			Default: Params{Seed: defaultSeed, Pairs: defaultPairs},
			parts:   growParts,
			run:     grow,
		},
		{
			Name:    "lognormal",
			Doc:     "settled steady state: median 4 KiB, sigma 1.5, at most 16 MiB, rounded up to 256 B",
			Default: base,
			parts:   mixParts,
			run:     steady(mixParts, func(Params) Sizes { return Lognormal().RoundedUp(quantum) }),
		},
		{
			Name:    "loguniform",
			Doc:     "settled steady state: the size's logarithm is uniform between two powers of two",
			Default: between(256, device.MiB),
			powers:  true,
			parts:   mixParts,
			run:     steady(mixParts, func(p Params) Sizes { return LogUniform(p.Least, p.Most) }),
		},
		{
			Name:    "uniform",
			Doc:     "settled steady state: the size is uniform between two bounds",
			Default: between(1, 16*device.KiB),
			parts:   mixParts,
			run:     steady(mixParts, func(p Params) Sizes { return Uniform(p.Least, p.Most) }),
		},
	}
}

// Names returns the names of the shapes, in the order of the catalogue.
func Names() (names []string) {
	for _, s := range All() {
		names = append(names, s.Name)
	}
	return names
}

// Lookup returns the shape of the given name.
func Lookup(name string) (Shape, error) {
	for _, s := range All() {
		if s.Name == name {
			return s, nil
		}
	}
	return Shape{}, fmt.Errorf("unknown workload %q: %s", name, nearest.Want(name, Names()))
}

// New returns the workload of this shape with the given parameters. Start from [Shape.Default]. An
// error is a [*ParamError].
func (s Shape) New(p Params) (Workload, error) {
	if name, why := s.validate(p); why != nil {
		return Workload{}, &ParamError{s.Name, name, why}
	}
	return Workload{shape: s, params: p, parts: s.parts(p)}, nil
}

// validate returns the first invalid parameter, and why it is invalid.
func (s Shape) validate(p Params) (name string, why error) {
	defaults := s.Default.list()
	for i, v := range p.list() {
		switch {
		case v.name == "seed": // any value is valid
		case defaults[i].value == 0 && v.value != 0:
			return v.name, fmt.Errorf("%s has no such parameter", s.Name)
		case defaults[i].value != 0 && (v.value < 1 || v.value > v.max):
			return v.name, fmt.Errorf("want 1 to %d", v.max)
		}
	}
	switch {
	case s.powers && p.Least&(p.Least-1) != 0:
		return "least", errPower
	case s.powers && p.Most&(p.Most-1) != 0:
		return "most", errPower
	case p.Least > p.Most:
		return "least", fmt.Errorf("want at most %v, the largest size", p.Most)
	}
	if n := s.parts(p).Total(); n > MaxOperations {
		name = "pairs"
		if s.Default.Pairs == 0 {
			name = "steps"
		}
		return name, fmt.Errorf("%d operations in all: want at most %d", n, MaxOperations)
	}
	return "", nil
}

var errPower = errors.New("want a power of two")

package workload

import (
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/nearest"
)

// The most that a workload may be made of.
const (
	// MaxLive bounds the live blocks, and so the slots.
	MaxLive = 1 << (64 - sizeBits)
	// MaxSize bounds the bytes of a block: half of what an [Op] holds, a round number.
	MaxSize = 512 * device.GiB
	// MaxOperations bounds the operations of all parts. A [Program] of so many takes 1 GiB.
	MaxOperations = 1 << 27
)

// Params are the parameters of a workload. Those that a shape does not have are zero.
type Params struct {
	Seed  uint64      `json:"seed"`                  // of the random numbers; any number
	Live  int         `json:"live,omitempty"`        // blocks live at once
	Pairs int         `json:"pairs,omitempty"`       // of a free and an allocation in the churn
	Steps int         `json:"steps,omitempty"`       // of the training
	Least device.Size `json:"least_bytes,omitempty"` // smallest size, in bytes
	Most  device.Size `json:"most_bytes,omitempty"`  // bound of the sizes, in bytes
}

// param is one parameter as a name and a number.
type param struct {
	name  string
	value uint64
	most  uint64 // largest value that is accepted; the smallest is 1, but for a seed
}

// list returns every parameter, those of a shape or not. A negative number appears as a huge
// one, which no bound admits.
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

// ParamError says which parameter of a workload cannot be as it is, and why.
type ParamError struct {
	Shape string // name of the shape
	Param string // name of the parameter in lower case: "live"
	Why   error  // what is wanted
}

// Error implements error.
func (e *ParamError) Error() string {
	return fmt.Sprintf("workload %s: %s: %v", e.Shape, e.Param, e.Why)
}

// Unwrap returns the reason.
func (e *ParamError) Unwrap() error { return e.Why }

// Shape is a kind of workload, an entry of the catalogue.
type Shape struct {
	Name    string // lower case, for command lines and tables
	Doc     string // what it is, in a line
	Default Params // what the published figures were measured with; zero where it has no such parameter

	powers bool // sizes are bounded by powers of two
	parts  func(Params) Parts
	run    func(Params, *sink)
}

// The parameters that the figures were published with.
const (
	defaultSeed  = 42
	defaultLive  = 1_000
	defaultPairs = 1_000_000
)

// All returns the catalogue. The mixes' default sizes are those that XDL's slab (uniform) and
// its Blaze slab (loguniform) were made for.
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

// New returns the workload of this shape with the given parameters; [Shape.Default] is what
// to begin with. An error is a [*ParamError].
func (s Shape) New(p Params) (Workload, error) {
	if name, why := s.judge(p); why != nil {
		return Workload{}, &ParamError{s.Name, name, why}
	}
	return Workload{shape: s, params: p, parts: s.parts(p)}, nil
}

// judge returns the parameter that cannot be as it is, and why.
func (s Shape) judge(p Params) (name string, why error) {
	usual := s.Default.list()
	for i, v := range p.list() {
		switch {
		case v.name == "seed": // any will do
		case usual[i].value == 0 && v.value != 0:
			return v.name, fmt.Errorf("%s has no such parameter", s.Name)
		case usual[i].value != 0 && (v.value < 1 || v.value > v.most):
			return v.name, fmt.Errorf("want 1 to %d", v.most)
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

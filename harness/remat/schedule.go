package remat

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/vramyard/vramyard/device"
)

// Tensor is the number of a tensor in a [Schedule], in order of creation from 0.
type Tensor int32

// NoAlias stands for an output that has a storage of its own.
const NoAlias = -1

// maxValue bounds one time in nanoseconds (thirteen days) and one size in bytes (a pebibyte),
// maxTotal their sums over a schedule, so that no sum of a run overflows.
const (
	maxValue = 1 << 50
	maxTotal = 1 << 60
)

// StepKind is what a step of a schedule does.
type StepKind uint8

const (
	// Compute runs an operator for the first time. Each output is born with one reference.
	Compute StepKind = iota
	// Get adds a reference to a tensor.
	Get
	// Release drops a reference to a tensor.
	Release
	// Pin computes a tensor again if it is gone, and keeps its storage from then on.
	Pin
)

// Step is one step of a schedule.
type Step struct {
	Kind StepKind // what to do
	Of   int32    // an operator for Compute, a Tensor for the others
}

// Op is an operator without side effects.
type Op struct {
	Name      string      // for people
	Cost      int64       // nanoseconds
	Workspace device.Size // bytes that it needs while it runs
	Args      []Tensor    // what it reads; a tensor may occur twice
	First     Tensor      // its first output; the others follow
	Outputs   int32       // how many outputs it has, at least 1
	Need      device.Size // bytes of all outputs that are no views
	Fixed     bool        // what it made cannot be made again
}

// View is one tensor of a schedule: a view of a storage.
type View struct {
	Op      int32 // the operator that makes it
	Storage int32 // what it lies in
	Written bool  // the operator wrote to the storage: all other views of it show what was there before
}

// Storage is what is resident or evicted as a whole.
type Storage struct {
	Root Tensor      // the tensor it was made for
	Size device.Size // bytes
}

// Schedule is a log in the form that is run. It is not changed by a run, and safe for concurrent
// use.
type Schedule struct {
	Ops      []Op      // all operators
	Tensors  []View    // by Tensor
	Storages []Storage // in order of creation
	Steps    []Step    // what to do, in order
	Cost     int64     // nanoseconds of every operator run once
	SHA256   string    // of the decompressed log it was read from; empty if it was built
}

// Output describes an output of an operator.
type Output struct {
	Size    device.Size // bytes; ignored for a view
	Alias   int         // index of the argument whose storage it views, or NoAlias
	Written bool        // the operator writes to that storage, which is there for ever
}

// Call describes an operator to a [Builder].
type Call struct {
	Name      string      // for people
	Cost      int64       // nanoseconds
	Workspace device.Size // bytes that it needs while it runs
	Args      []Tensor    // what it reads
	Outputs   []Output    // what it makes
	Fixed     bool        // it cannot be run again
}

// Builder makes a [Schedule]. Its zero value is ready. Its methods fail without a change if what
// they are given makes no sense.
type Builder struct {
	s       Schedule
	refs    []int32  // by tensor
	stays   []bool   // by tensor: once it is there it never goes
	held    []bool   // by storage: it is there for ever
	newest  []Tensor // by storage: what it was written to for last, or its root
	written []Tensor // by tensor: newest of its storage when it was made
	open    []Tensor // those that do not stay, some without references among them
	sum     device.Size
}

// Schedule returns what was built. The builder must not be used any more.
func (b *Builder) Schedule() *Schedule { return &b.s }

// Constant adds a tensor that is there for ever, such as a weight.
func (b *Builder) Constant(size device.Size) (Tensor, error) {
	return b.Call(Call{Name: "constant", Outputs: []Output{{Size: size, Alias: NoAlias}}, Fixed: true})
}

// Call adds an operator and returns its first output; the others have the numbers that follow. What
// an operator writes to in its place cannot be read as it was any more: tensors that would have to
// be made of it again are pinned before.
func (b *Builder) Call(c Call) (Tensor, error) {
	if err := b.judge(c); err != nil {
		return 0, err
	}
	for _, o := range c.Outputs {
		if o.Written {
			b.keep(b.s.Tensors[c.Args[o.Alias]].Storage)
		}
	}
	op, first := int32(len(b.s.Ops)), Tensor(len(b.s.Tensors))
	need := device.Size(0)
	for i, o := range c.Outputs {
		t, storage := first+Tensor(i), int32(len(b.s.Storages))
		if o.Alias == NoAlias {
			b.s.Storages = append(b.s.Storages, Storage{Root: t, Size: o.Size})
			b.held, b.newest = append(b.held, false), append(b.newest, t)
			need += o.Size
		} else {
			storage = b.s.Tensors[c.Args[o.Alias]].Storage
		}
		b.add(t, View{op, storage, o.Written}, c.Fixed)
	}
	b.s.Ops = append(b.s.Ops, Op{c.Name, c.Cost, c.Workspace, c.Args, first, int32(len(c.Outputs)), need, c.Fixed})
	b.s.Steps = append(b.s.Steps, Step{Compute, op})
	b.s.Cost += c.Cost
	b.sum += need
	return first, nil
}

func (b *Builder) add(t Tensor, v View, fixed bool) {
	b.s.Tensors = append(b.s.Tensors, v)
	b.refs = append(b.refs, 1)
	if v.Written {
		b.newest[v.Storage] = t
	}
	b.written = append(b.written, b.newest[v.Storage])
	b.held[v.Storage] = b.held[v.Storage] || fixed
	b.stays = append(b.stays, b.held[v.Storage])
	if !b.held[v.Storage] {
		b.open = append(b.open, t)
	}
}

// keep pins every tensor that somebody refers to and that, if it went, would be made again of what
// a storage holds now. It looks at what those tensors are made of that do not stay.
func (b *Builder) keep(storage int32) {
	b.open = slices.DeleteFunc(b.open, func(t Tensor) bool { return b.refs[t] == 0 || b.stays[t] })
	made := map[Tensor]bool{} // of the storage, with what stays left out
	for list := slices.Clone(b.open); len(list) > 0; {
		t := list[len(list)-1]
		list = list[:len(list)-1]
		if _, seen := made[t]; seen {
			continue
		}
		made[t] = false
		for _, a := range b.s.Ops[b.s.Tensors[t].Op].Args {
			if !b.stays[a] {
				list = append(list, a)
			}
		}
	}
	for _, t := range slices.Sorted(maps.Keys(made)) {
		for _, a := range b.s.Ops[b.s.Tensors[t].Op].Args {
			made[t] = made[t] || made[a] || b.s.Tensors[a].Storage == storage
		}
	}
	for _, t := range b.open {
		if made[t] {
			b.pin(t)
		}
	}
}

func (b *Builder) pin(t Tensor) {
	b.stays[t], b.held[b.s.Tensors[t].Storage] = true, true
	b.s.Steps = append(b.s.Steps, Step{Pin, int32(t)})
}

func (b *Builder) judge(c Call) error {
	sum := b.sum
	switch {
	case len(c.Outputs) == 0:
		return errors.New("an operator has no output")
	case c.Cost < 0 || c.Cost > maxValue:
		return fmt.Errorf("cost %d: want 0 to %d ns", c.Cost, int64(maxValue))
	case c.Workspace > maxValue:
		return fmt.Errorf("workspace %d: want at most %d bytes", c.Workspace, int64(maxValue))
	case len(c.Outputs) > math.MaxInt32-len(b.s.Tensors):
		return errors.New("more than 2147483647 tensors")
	}
	for i, a := range c.Args {
		if a < 0 || int(a) >= len(b.s.Tensors) {
			return fmt.Errorf("there is no tensor %d", a)
		}
		if b.refs[a] == 0 {
			return fmt.Errorf("argument %d: %w", i, errDead)
		}
		if b.written[a] != b.newest[b.s.Tensors[a].Storage] {
			return fmt.Errorf("argument %d: %w", i, errOver)
		}
	}
	for _, o := range c.Outputs {
		switch {
		case o.Written && (o.Alias < 0 || o.Alias >= len(c.Args) || !c.Fixed || !b.fixed(c.Args[o.Alias])):
			return errors.New("only what is there for ever is written in its place, by an operator that cannot run again")
		case o.Alias < NoAlias || o.Alias >= len(c.Args):
			return fmt.Errorf("a view of argument %d: the operator has %d", o.Alias, len(c.Args))
		case o.Alias == NoAlias && o.Size > maxValue:
			return fmt.Errorf("size %d: want at most %d bytes", o.Size, int64(maxValue))
		case o.Alias == NoAlias:
			sum += o.Size
		}
		if sum > maxTotal {
			return fmt.Errorf("all sizes add up to more than %d bytes", int64(maxTotal))
		}
	}
	if b.s.Cost+c.Cost > maxTotal {
		return fmt.Errorf("all costs add up to more than %d ns", int64(maxTotal))
	}
	return nil
}

// Get adds a reference to a tensor. It fails if the tensor has none.
func (b *Builder) Get(t Tensor) error { return b.refer(Get, t, 1) }

// Release drops a reference to a tensor. It fails if the tensor has none.
func (b *Builder) Release(t Tensor) error { return b.refer(Release, t, -1) }

// Pin keeps a tensor from here on. It fails if the tensor has no reference.
func (b *Builder) Pin(t Tensor) error {
	if err := b.referred(t); err != nil {
		return err
	}
	b.pin(t)
	return nil
}

var (
	// errDead is that a tensor is used after its last release. It may be gone for good by then.
	errDead = errors.New("no reference to the tensor is left")
	// errOver is that a tensor is read after another was written in its place.
	errOver = errors.New("it was written over")
)

func (b *Builder) referred(t Tensor) error {
	if t < 0 || int(t) >= len(b.refs) {
		return fmt.Errorf("there is no tensor %d", t)
	}
	if b.refs[t] == 0 {
		return errDead
	}
	return nil
}

func (b *Builder) refer(k StepKind, t Tensor, by int32) error {
	if err := b.referred(t); err != nil {
		return err
	}
	b.refs[t] += by
	b.s.Steps = append(b.s.Steps, Step{k, int32(t)})
	return nil
}

// References returns how many references to a tensor there are.
func (b *Builder) References(t Tensor) int { return int(b.refs[t]) }

// StorageSize returns the bytes of the storage of a tensor, which may be more than a view of it
// shows.
func (b *Builder) StorageSize(t Tensor) device.Size {
	return b.s.Storages[b.s.Tensors[t].Storage].Size
}

// fixed reports whether the storage of a tensor is there for ever: of a constant, of what cannot be
// made again, or pinned.
func (b *Builder) fixed(t Tensor) bool { return b.held[b.s.Tensors[t].Storage] }

// end returns the number behind the last output.
func (o *Op) end() Tensor { return o.First + Tensor(o.Outputs) }

func (o *Op) outputs() iter.Seq[Tensor] {
	return func(yield func(Tensor) bool) {
		for t := o.First; t < o.end() && yield(t); t++ {
		}
	}
}

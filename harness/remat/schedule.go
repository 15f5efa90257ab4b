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

// Tensor is the index of a tensor in a [Schedule], in order of creation.
type Tensor int32

// NoAlias marks an output with a storage of its own.
const NoAlias = -1

// maxValue bounds a time in nanoseconds (13 days) and a size in bytes (1 PiB), maxTotal their sums
// over a schedule, so that no sum of a run overflows.
const (
	maxValue = 1 << 50
	maxTotal = 1 << 60
)

// StepKind is the kind of a schedule step.
type StepKind uint8

const (
	// Compute runs an operator for the first time. Each output gets one reference.
	Compute StepKind = iota
	// Retain adds a reference to a tensor.
	Retain
	// Release drops a reference to a tensor.
	Release
	// Pin recomputes a tensor if it is missing, and keeps its storage resident from then on.
	Pin
	// Drop evicts the storage of a tensor if it is resident and not pinned. It is recomputed when it
	// is read.
	Drop
)

// Step is one step of a schedule.
type Step struct {
	Kind StepKind // the kind
	Of   int32    // index of an operator for Compute, a Tensor for the others
}

// Op is an operator without side effects.
type Op struct {
	Name        string      // for messages
	Cost        int64       // nanoseconds
	Workspace   device.Size // bytes needed only while it runs
	Args        []Tensor    // inputs; a tensor may occur several times
	First       Tensor      // first output; the others have the next indices
	Outputs     int32       // number of outputs, at least 1
	OutputBytes device.Size // bytes of all outputs except views
	Fixed       bool        // it cannot be rerun, so its outputs are pinned
}

// View is a tensor of a schedule: a view of a storage.
type View struct {
	Op      int32 // index of the operator that produces it
	Storage int32 // index in Schedule.Storages
	Written bool  // the operator wrote to the storage in place, so older views must not be read any more
}

// Storage is the unit of eviction: the memory of a tensor and of its views.
type Storage struct {
	Root Tensor      // the tensor that it was created for; the others are views of it
	Size device.Size // bytes
}

// Schedule is the program of a training step, lowered from a log. Runs do not change it, and it is
// safe for concurrent use.
type Schedule struct {
	Ops      []Op      // all operators
	Tensors  []View    // by Tensor
	Storages []Storage // in order of creation
	Steps    []Step    // in order
	Cost     int64     // nanoseconds of all operators, each run once
	SHA256   string    // of the decompressed log; empty without a log
}

// Output describes an output of an operator.
type Output struct {
	Size    device.Size // bytes; ignored for a view
	Alias   int         // index of the argument whose storage it views, or NoAlias
	Written bool        // the operator writes to that storage in place; it must be fixed
}

// Call describes an operator to a [Builder].
type Call struct {
	Name      string      // for messages
	Cost      int64       // nanoseconds
	Workspace device.Size // bytes needed only while it runs
	Args      []Tensor    // inputs
	Outputs   []Output    // at least one
	Fixed     bool        // it cannot be rerun
}

// Builder makes a [Schedule]. The zero value is ready to use. A method that returns an error
// changes nothing.
type Builder struct {
	s            Schedule
	refs         []int32  // by tensor
	fixedTensor  []bool   // by tensor: never evicted once computed
	fixedStorage []bool   // by storage: never evicted from now on
	lastWrite    []Tensor // by storage: the output of its last in-place write, or its root
	seenWrite    []Tensor // by tensor: lastWrite of its storage when the tensor was made
	unfixed      []Tensor // tensors that were not fixed when they were made
	sum          device.Size
}

// Schedule returns the schedule. The builder must not be used afterwards.
func (b *Builder) Schedule() *Schedule { return &b.s }

// Constant adds a tensor that is never evicted, such as a weight.
func (b *Builder) Constant(size device.Size) (Tensor, error) {
	return b.Call(Call{Name: "constant", Outputs: []Output{{Size: size, Alias: NoAlias}}, Fixed: true})
}

// Call adds an operator and returns its first output; the others have the next indices. Before an
// in-place write, which destroys the old content, it pins the tensors whose recomputation reads it.
func (b *Builder) Call(c Call) (Tensor, error) {
	if err := b.validate(c); err != nil {
		return 0, err
	}
	for _, o := range c.Outputs {
		if o.Written {
			b.pinReaders(b.s.Tensors[c.Args[o.Alias]].Storage)
		}
	}
	op, first := int32(len(b.s.Ops)), Tensor(len(b.s.Tensors))
	need := device.Size(0)
	for i, o := range c.Outputs {
		t, storage := first+Tensor(i), int32(len(b.s.Storages))
		if o.Alias == NoAlias {
			b.s.Storages = append(b.s.Storages, Storage{Root: t, Size: o.Size})
			b.fixedStorage, b.lastWrite = append(b.fixedStorage, false), append(b.lastWrite, t)
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
		b.lastWrite[v.Storage] = t
	}
	b.seenWrite = append(b.seenWrite, b.lastWrite[v.Storage])
	b.fixedStorage[v.Storage] = b.fixedStorage[v.Storage] || fixed
	b.fixedTensor = append(b.fixedTensor, b.fixedStorage[v.Storage])
	if !b.fixedStorage[v.Storage] {
		b.unfixed = append(b.unfixed, t)
	}
}

// pinReaders pins every referenced tensor whose recomputation would read the current content of a
// storage. It searches all ancestors of these tensors, except beyond fixed ones.
func (b *Builder) pinReaders(storage int32) {
	b.unfixed = slices.DeleteFunc(b.unfixed, func(t Tensor) bool { return b.refs[t] == 0 || b.fixedTensor[t] })
	reads := map[Tensor]bool{} // whether recomputing the tensor reads the storage
	for list := slices.Clone(b.unfixed); len(list) > 0; {
		t := list[len(list)-1]
		list = list[:len(list)-1]
		if _, seen := reads[t]; seen {
			continue
		}
		reads[t] = false
		for _, a := range b.s.Ops[b.s.Tensors[t].Op].Args {
			if !b.fixedTensor[a] {
				list = append(list, a)
			}
		}
	}
	for _, t := range slices.Sorted(maps.Keys(reads)) {
		for _, a := range b.s.Ops[b.s.Tensors[t].Op].Args {
			reads[t] = reads[t] || reads[a] || b.s.Tensors[a].Storage == storage
		}
	}
	for _, t := range b.unfixed {
		if reads[t] {
			b.pin(t)
		}
	}
}

func (b *Builder) pin(t Tensor) {
	b.fixedTensor[t], b.fixedStorage[b.s.Tensors[t].Storage] = true, true
	b.s.Steps = append(b.s.Steps, Step{Pin, int32(t)})
}

func (b *Builder) validate(c Call) error {
	sum := b.sum
	switch {
	case len(c.Outputs) == 0:
		return errors.New("an operator without outputs: want at least 1")
	case c.Cost < 0 || c.Cost > maxValue:
		return fmt.Errorf("cost %d: want 0 to %d ns", c.Cost, int64(maxValue))
	case c.Workspace > maxValue:
		return fmt.Errorf("workspace %d: want at most %d bytes", c.Workspace, int64(maxValue))
	case len(c.Outputs) > math.MaxInt32-len(b.s.Tensors):
		return errors.New("want at most 2147483647 tensors")
	}
	for i, a := range c.Args {
		if a < 0 || int(a) >= len(b.s.Tensors) {
			return fmt.Errorf("argument %d: there is no tensor %d", i, a)
		}
		if b.refs[a] == 0 {
			return fmt.Errorf("argument %d: %w", i, errReleased)
		}
		if b.seenWrite[a] != b.lastWrite[b.s.Tensors[a].Storage] {
			return fmt.Errorf("argument %d: %w", i, errOverwritten)
		}
	}
	for _, o := range c.Outputs {
		switch {
		case o.Written && (o.Alias < 0 || o.Alias >= len(c.Args) || !c.Fixed || !b.fixed(c.Args[o.Alias])):
			return errors.New("in-place write: want a fixed storage and a fixed operator")
		case o.Alias < NoAlias || o.Alias >= len(c.Args):
			return fmt.Errorf("view of argument %d: the operator has %d arguments", o.Alias, len(c.Args))
		case o.Alias == NoAlias && o.Size > maxValue:
			return fmt.Errorf("size %d: want at most %d bytes", o.Size, int64(maxValue))
		case o.Alias == NoAlias:
			sum += o.Size
		}
		if sum > maxTotal {
			return fmt.Errorf("the sum of all sizes exceeds %d bytes", int64(maxTotal))
		}
	}
	if b.s.Cost+c.Cost > maxTotal {
		return fmt.Errorf("the sum of all costs exceeds %d ns", int64(maxTotal))
	}
	return nil
}

// Retain adds a reference to a tensor. It fails if the tensor has none.
func (b *Builder) Retain(t Tensor) error { return b.addStep(Retain, t, 1) }

// Release drops a reference to a tensor. It fails if the tensor has none.
func (b *Builder) Release(t Tensor) error { return b.addStep(Release, t, -1) }

// Pin keeps a tensor resident from now on. It fails if the tensor has no reference.
func (b *Builder) Pin(t Tensor) error {
	if err := b.checkReferenced(t); err != nil {
		return err
	}
	b.pin(t)
	return nil
}

// Drop evicts a tensor that keeps its references. It fails if the tensor has none.
func (b *Builder) Drop(t Tensor) error { return b.addStep(Drop, t, 0) }

var (
	// errReleased: the tensor is used after its last release, when it may be freed permanently.
	errReleased = errors.New("the tensor has no references left")
	// errOverwritten: the tensor is read after an in-place write to its storage.
	errOverwritten = errors.New("the tensor was overwritten")
)

func (b *Builder) checkReferenced(t Tensor) error {
	if t < 0 || int(t) >= len(b.refs) {
		return fmt.Errorf("there is no tensor %d", t)
	}
	if b.refs[t] == 0 {
		return errReleased
	}
	return nil
}

func (b *Builder) addStep(k StepKind, t Tensor, by int32) error {
	if err := b.checkReferenced(t); err != nil {
		return err
	}
	b.refs[t] += by
	b.s.Steps = append(b.s.Steps, Step{k, int32(t)})
	return nil
}

// References returns the number of references to a tensor.
func (b *Builder) References(t Tensor) int { return int(b.refs[t]) }

// StorageSize returns the bytes of the storage of a tensor, of which a view may be a part.
func (b *Builder) StorageSize(t Tensor) device.Size {
	return b.s.Storages[b.s.Tensors[t].Storage].Size
}

// fixed reports whether the storage of a tensor is never evicted: it is a constant, pinned, or an
// output of an operator that cannot be rerun.
func (b *Builder) fixed(t Tensor) bool { return b.fixedStorage[b.s.Tensors[t].Storage] }

func (o *Op) end() Tensor { return o.First + Tensor(o.Outputs) }

func (o *Op) outputs() iter.Seq[Tensor] {
	return func(yield func(Tensor) bool) {
		for t := o.First; t < o.end() && yield(t); t++ {
		}
	}
}

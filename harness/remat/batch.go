package remat

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/vramyard/vramyard/device"
)

// MaxBatch bounds a batch size.
const MaxBatch = 1 << 20

// Recording is the log of a program that ran with a batch size.
type Recording struct {
	Batch    int       // batch size
	Schedule *Schedule // its log
}

// Batches predicts the log of a program at any batch size. A log has no shapes, so the growth of
// each tensor comes from recordings: the bytes of a storage and the time of an operator lie on the
// line through the smallest and the largest recording, rounded up. A line that falls with the batch
// size is not followed beyond the two.
type Batches struct {
	low, high Recording
	between   []Recording
}

// Deviation compares a recording with the prediction at its batch size. A figure is a sum of
// absolute differences, relative to the sum of the recording.
type Deviation struct {
	Batch int     `json:"batch"` // batch size
	Bytes float64 `json:"bytes"` // of the bytes of storages
	Time  float64 `json:"time"`  // of the times of operators
	Step  float64 `json:"step"`  // of the time of all operators together, with its sign
}

// NewBatches compares the recordings, at least two. They must be of one program and have different
// batch sizes.
func NewBatches(all []Recording) (*Batches, error) {
	if len(all) < 2 {
		return nil, errors.New("one recording: want logs of at least two batch sizes, since a log " +
			"does not record which tensors grow with the batch")
	}
	all = slices.SortedFunc(slices.Values(all), func(a, b Recording) int { return cmp.Compare(a.Batch, b.Batch) })
	for i, r := range all {
		if r.Batch < 1 || r.Batch > MaxBatch {
			return nil, fmt.Errorf("batch size %d: want 1 to %d", r.Batch, MaxBatch)
		}
		if i == 0 {
			continue
		}
		if r.Batch == all[i-1].Batch {
			return nil, fmt.Errorf("batch size %d is given twice", r.Batch)
		}
		if err := sameProgram(all[0].Schedule, r.Schedule); err != nil {
			return nil, fmt.Errorf("the logs of batch sizes %d and %d are of different programs: %w", all[0].Batch, r.Batch,
				err)
		}
	}
	last := len(all) - 1
	return &Batches{all[0], all[last], all[1:last]}, nil
}

// sameProgram returns the first difference between two schedules in anything but sizes and times.
func sameProgram(a, b *Schedule) error {
	ops := 0
	for i := range max(len(a.Steps), len(b.Steps)) {
		x, y := a.describe(i), b.describe(i)
		if x != y {
			return fmt.Errorf("after %d operators, one has %s and the other %s", ops, x, y)
		}
		if a.Steps[i].Kind != Compute {
			continue
		}
		if !sameOp(a, b, a.Steps[i].Of) {
			return fmt.Errorf("after %d operators, %s has other inputs or outputs", ops, x)
		}
		ops++
	}
	return nil
}

// describe returns a step for people.
func (s *Schedule) describe(i int) string {
	if i >= len(s.Steps) {
		return "the end"
	}
	step := s.Steps[i]
	if step.Kind == Compute {
		return "operator " + clip(s.Ops[step.Of].Name)
	}
	names := map[StepKind]string{Retain: "a copy", Release: "the release", Pin: "the end", Drop: "the drop"}
	return fmt.Sprintf("%s of tensor %d", names[step.Kind], step.Of)
}

// sameOp reports whether an operator has the same inputs and outputs in both schedules.
func sameOp(a, b *Schedule, op int32) bool {
	x, y := &a.Ops[op], &b.Ops[op]
	return slices.Equal(x.Args, y.Args) && x.First == y.First && x.Outputs == y.Outputs && x.Fixed == y.Fixed &&
		slices.Equal(a.Tensors[x.First:x.end()], b.Tensors[y.First:y.end()])
}

// At returns the log at a batch size. It is exact at the smallest and the largest recording.
func (b *Batches) At(batch int) (*Schedule, error) {
	low, high := b.low.Schedule, b.high.Schedule
	s := &Schedule{Ops: slices.Clone(low.Ops), Tensors: low.Tensors, Storages: slices.Clone(low.Storages),
		Steps: low.Steps}
	bytes := int64(0)
	for i := range s.Storages {
		n := b.value(batch, int64(low.Storages[i].Size), int64(high.Storages[i].Size))
		s.Storages[i].Size = device.Size(n)
		bytes = min(bytes+n, maxTotal+1)
	}
	for i := range s.Ops {
		op := &s.Ops[i]
		op.Cost = b.value(batch, op.Cost, high.Ops[i].Cost)
		op.Workspace = device.Size(b.value(batch, int64(op.Workspace), int64(high.Ops[i].Workspace)))
		s.Cost = min(s.Cost+op.Cost, maxTotal+1)
		bytes = max(bytes, int64(op.Workspace))
		op.OutputBytes = 0
		for t := range op.outputs() {
			if st := s.Storages[s.Tensors[t].Storage]; st.Root == t {
				op.OutputBytes += st.Size
			}
		}
	}
	if bytes > maxTotal || s.Cost > maxTotal {
		return nil, fmt.Errorf("batch size %d: sizes or times exceed %d bytes or ns", batch, int64(maxTotal))
	}
	return s, nil
}

// value returns the figure at a batch size, given the ones of the smallest and the largest
// recording.
func (b *Batches) value(batch int, low, high int64) int64 {
	if high < low {
		batch = min(max(batch, b.low.Batch), b.high.Batch)
	}
	rise, run, width := high-low, batch-b.low.Batch, uint64(b.high.Batch-b.low.Batch)
	falls := (rise < 0) != (run < 0)
	upper, lower := bits.Mul64(uint64(max(rise, -rise)), uint64(max(run, -run)))
	if upper >= width {
		return maxTotal + 1
	}
	quotient, rest := bits.Div64(upper, lower, width)
	change := int64(min(quotient, maxTotal))
	switch {
	case falls:
		return max(0, low-change)
	case rest > 0:
		change++
	}
	return low + change
}

// Deviations compares every recording between the smallest and the largest with the prediction.
func (b *Batches) Deviations() ([]Deviation, error) {
	all := make([]Deviation, 0, len(b.between))
	for _, r := range b.between {
		s, err := b.At(r.Batch)
		if err != nil {
			return nil, err
		}
		d := Deviation{Batch: r.Batch}
		size, sum := int64(0), int64(0)
		for i, st := range r.Schedule.Storages {
			off := int64(s.Storages[i].Size) - int64(st.Size)
			size, sum = size+max(off, -off), sum+int64(st.Size)
		}
		time := int64(0)
		for i := range s.Ops {
			off := s.Ops[i].Cost - r.Schedule.Ops[i].Cost
			time += max(off, -off)
		}
		d.Bytes, d.Time = share(size, sum), share(time, r.Schedule.Cost)
		d.Step = share(s.Cost-r.Schedule.Cost, r.Schedule.Cost)
		all = append(all, d)
	}
	return all, nil
}

// share returns n / of; without a whole, 0 for nothing and 1 for anything else.
func share(n, of int64) float64 {
	if of == 0 {
		return float64(min(n, 1))
	}
	return float64(n) / float64(of)
}

package remat

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/budget"
)

// ReadFile reads a log from a file, compressed or not. Every error is a [*trace.Error] with the
// file and, if known, the line. The budget bounds the memory that the schedule may occupy.
func ReadFile(path string, memory *budget.Budget) (*Schedule, error) {
	lines, err := trace.OpenLines(path, memory)
	if err != nil {
		return nil, err
	}
	defer lines.Close()
	return readLog(lines)
}

// Read is [ReadFile] for a stream. Errors contain the name.
func Read(r io.Reader, name string, memory *budget.Budget) (*Schedule, error) {
	lines, err := trace.NewLines(r, name, memory)
	if err != nil {
		return nil, err
	}
	defer lines.Close()
	return readLog(lines)
}

// reader lowers a log to a schedule.
type reader struct {
	lines *trace.Lines
	b     Builder
	rec   logLine          // the current line
	begun bool             // START was seen, so the warm-up is over
	names map[string]int32 // by name: its index in bound
	bound []Tensor         // the tensor that each name refers to, in order of first definition
}

func readLog(lines *trace.Lines) (*Schedule, error) {
	r := &reader{lines: lines, names: map[string]int32{}}
	for {
		more, err := r.next()
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		from := lines.Line()
		if err := r.apply(); err != nil {
			if _, placed := errors.AsType[*trace.Error](err); placed {
				return nil, err
			}
			return nil, lines.ErrorAt(from, err)
		}
	}
	if !r.begun {
		return nil, lines.ErrorAt(0, errors.New("no ANNOTATE line with START: everything before START is warm-up"))
	}
	for _, t := range r.bound {
		if r.b.References(t) == 0 {
			continue
		}
		if err := r.b.Pin(t); err != nil {
			return nil, lines.ErrorAt(0, err)
		}
	}
	s := r.b.Schedule()
	s.SHA256 = lines.Hash()
	return s, nil
}

func (r *reader) next() (bool, error) {
	line, err := r.lines.Next()
	if err != nil || line == nil {
		return false, err
	}
	if err := r.rec.parse(line); err != nil {
		return false, r.lines.ErrorAt(r.lines.Line(), err)
	}
	if err := r.lines.Memory().Take(r.rec.memoryBound()); err != nil {
		return false, r.lines.ErrorAt(r.lines.Line(), err)
	}
	k, ok := instructions[r.rec.instruction]
	if !ok {
		return false, r.lines.ErrorAt(r.lines.Line(), fmt.Errorf("unknown INSTRUCTION %s", clip(r.rec.instruction)))
	}
	if missing := k.need &^ r.rec.has; missing != 0 {
		return false, r.lines.ErrorAt(r.lines.Line(), fmt.Errorf("%s without %s", r.rec.instruction, lowest(missing)))
	}
	if unexpected := r.rec.has &^ (k.need | k.may | fInstruction); unexpected != 0 {
		return false, r.lines.ErrorAt(r.lines.Line(), fmt.Errorf("%s has no field %s", r.rec.instruction, lowest(unexpected)))
	}
	return true, nil
}

func lowest(set field) string {
	for name, f := range fields { // at most one name has the bit
		if f.bit == set&-set {
			return name
		}
	}
	return ""
}

// instructions holds the required and the optional fields of each instruction.
var instructions = map[string]struct{ need, may field }{
	"ANNOTATE":  {fAnnotation, 0},
	"CONSTANT":  {fName, 0},
	"CALL":      {fResult | fName | fArgs | fTime, extended},
	"MUTATE":    {fName | fArgs | fMutate | fTime, extended},
	"COPY":      {fDst | fSrc, 0},
	"COPY_FROM": {fDst | fSrc, 0},
	"RELEASE":   {fName, 0},
	"DROP":      {fName, 0},
	"MEMORY":    {fName | fMemory, 0},
	"ALIAS":     {fName | fAlias, 0},
}

// handlers holds the method that lowers each instruction. The method of an instruction also reads
// the MEMORY and ALIAS lines of its results, so such a line without an instruction is stray.
var handlers = map[string]func(*reader) error{
	"ANNOTATE":  (*reader).annotate,
	"CONSTANT":  (*reader).constant,
	"CALL":      (*reader).call,
	"MUTATE":    (*reader).mutate,
	"COPY":      (*reader).copy,
	"COPY_FROM": (*reader).copyFrom,
	"RELEASE":   (*reader).release,
	"DROP":      (*reader).drop,
	"MEMORY":    (*reader).stray,
	"ALIAS":     (*reader).stray,
}

// apply lowers the current line and the MEMORY and ALIAS lines of its results.
func (r *reader) apply() error {
	if !r.begun && r.rec.annotation != "START" {
		return nil
	}
	return handlers[r.rec.instruction](r)
}

func (r *reader) annotate() error {
	switch r.rec.annotation {
	case "START":
		r.begun = true // a second START has no effect
	case "BACKWARD":
	default:
		return fmt.Errorf("annotation %s: want START or BACKWARD", clip(r.rec.annotation))
	}
	return nil
}

func (r *reader) stray() error {
	return fmt.Errorf("%s of %s does not follow its CALL or CONSTANT", r.rec.instruction, clip(r.rec.name))
}

// expect reads the next line, which must be this instruction for this name.
func (r *reader) expect(kind, name string) error {
	more, err := r.next()
	switch {
	case err != nil:
		return err
	case !more:
		return r.lines.ErrorAt(0, fmt.Errorf("the log ends, want %s of %s", kind, clip(name)))
	case r.rec.instruction != kind || r.rec.name != name:
		return r.lines.ErrorAt(r.lines.Line(), fmt.Errorf("%s of %s: want %s of %s",
			r.rec.instruction, clip(r.rec.name), kind, clip(name)))
	}
	return nil
}

func (r *reader) constant() error {
	name := r.rec.name
	if err := r.checkUndefined(name); err != nil {
		return err
	}
	if err := r.expect("MEMORY", name); err != nil {
		return err
	}
	t, err := r.b.Constant(device.Size(r.rec.memory))
	if err == nil {
		r.bind(name, t)
	}
	return err
}

func (r *reader) call() error {
	rec := r.rec
	args, err := r.lookupAll(rec.args)
	if err != nil {
		return err
	}
	outs := make([]Output, 0, min(len(rec.result), 16)) // grows with the lines read, not with the list of names
	for _, name := range rec.result {
		if err := r.checkUndefined(name); err != nil {
			return err
		}
		o, err := r.output(name, len(args))
		if err != nil {
			return err
		}
		outs = append(outs, o)
	}
	first, err := r.b.Call(r.operator(&rec, args, outs))
	if err != nil {
		return err
	}
	for i, name := range rec.result {
		if err := r.checkUndefined(name); err != nil {
			return err
		}
		r.bind(name, first+Tensor(i))
	}
	return nil
}

func (r *reader) output(name string, args int) (Output, error) {
	if err := r.expect("MEMORY", name); err != nil {
		return Output{}, err
	}
	size := device.Size(r.rec.memory)
	if err := r.expect("ALIAS", name); err != nil {
		return Output{}, err
	}
	if r.rec.alias >= int64(args) {
		return Output{}, r.lines.ErrorAt(r.lines.Line(), fmt.Errorf("ALIAS %d: the operator has %d arguments",
			r.rec.alias, args))
	}
	return Output{Size: size, Alias: int(r.rec.alias)}, nil
}

func (r *reader) operator(rec *logLine, args []Tensor, outs []Output) Call {
	return Call{rec.name, rec.time, device.Size(rec.workspace), args, outs, !rec.recomputable}
}

func (r *reader) mutate() error {
	args, err := r.lookupAll(r.rec.args)
	if err != nil {
		return err
	}
	which := make([]int, 0, len(r.rec.mutate))
	outs := make([]Output, 0, len(r.rec.mutate))
	seen := map[int]bool{}
	for _, text := range r.rec.mutate {
		i, err := strconv.Atoi(text)
		switch {
		case err != nil || i < 0 || i >= len(args):
			return fmt.Errorf("MUTATE %s: want an index of one of %d arguments", clip(text), len(args))
		case seen[i]:
			return fmt.Errorf("MUTATE %d is given twice", i)
		}
		seen[i] = true
		which = append(which, i)
		outs = append(outs, r.mutatedOutput(args[i], i))
	}
	first, err := r.b.Call(r.operator(&r.rec, args, outs))
	if err != nil {
		return err
	}
	for k, i := range which {
		if err := r.rebind(r.rec.args[i], first+Tensor(k)); err != nil {
			return err
		}
	}
	return nil
}

// mutatedOutput returns the output that replaces argument i after a mutation. It is a new storage,
// so that tensors computed from the old content can be recomputed. The exception is an operator
// that cannot be rerun and mutates a fixed storage: it writes in place, because a weight and its
// update would otherwise both be resident until the end of the log.
func (r *reader) mutatedOutput(arg Tensor, i int) Output {
	if !r.rec.recomputable && r.b.fixed(arg) {
		return Output{Alias: i, Written: true}
	}
	return Output{Size: r.b.StorageSize(arg), Alias: NoAlias}
}

func (r *reader) copy() error {
	if err := r.checkUndefined(r.rec.dst); err != nil {
		return err
	}
	src, err := r.lookup(r.rec.src)
	if err != nil {
		return err
	}
	if err := r.b.Retain(src); err != nil {
		return fmt.Errorf("%s: %w", clip(r.rec.src), err)
	}
	r.bind(r.rec.dst, src)
	return nil
}

func (r *reader) copyFrom() error {
	src, err := r.lookup(r.rec.src)
	if err != nil {
		return err
	}
	if _, err := r.lookup(r.rec.dst); err != nil {
		return err
	}
	if err := r.rebind(r.rec.dst, src); err != nil {
		return err
	}
	if err := r.b.Retain(src); err != nil {
		return fmt.Errorf("%s: %w", clip(r.rec.src), err)
	}
	return nil
}

// release drops a reference. A name that is not defined was released from the warm-up: no effect.
func (r *reader) release() error {
	i, ok := r.names[r.rec.name]
	if !ok {
		return nil
	}
	if err := r.b.Release(r.bound[i]); err != nil {
		return fmt.Errorf("%s: %w", clip(r.rec.name), err)
	}
	return nil
}

// drop evicts a tensor that keeps its references, as a program can request of MegEngine.
func (r *reader) drop() error {
	t, err := r.lookup(r.rec.name)
	if err != nil {
		return err
	}
	if err := r.b.Drop(t); err != nil {
		return fmt.Errorf("%s: %w", clip(r.rec.name), err)
	}
	return nil
}

func (r *reader) checkUndefined(name string) error {
	if _, ok := r.names[name]; ok {
		return fmt.Errorf("%s is defined already", clip(name))
	}
	return nil
}

func (r *reader) bind(name string, t Tensor) {
	r.names[name] = int32(len(r.bound))
	r.bound = append(r.bound, t)
}

// rebind makes a name refer to another tensor and drops the reference to the old one.
func (r *reader) rebind(name string, t Tensor) error {
	i := r.names[name]
	if err := r.b.Release(r.bound[i]); err != nil {
		return fmt.Errorf("%s: %w", clip(name), err)
	}
	r.bound[i] = t
	return nil
}

func (r *reader) lookup(name string) (Tensor, error) {
	i, ok := r.names[name]
	if !ok {
		return 0, fmt.Errorf("%s is not defined", clip(name))
	}
	return r.bound[i], nil
}

func (r *reader) lookupAll(names []string) ([]Tensor, error) {
	list := make([]Tensor, 0, len(names))
	for _, name := range names {
		t, err := r.lookup(name)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, nil
}

package launch

import (
	"cmp"
	"context"
	_ "embed" // modules of Python
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/device/standin"
	"github.com/vramyard/vramyard/python"
)

//go:embed sitecustomize.py
var sitecustomize string

//go:embed pools.py
var pools string

// Options describe a run.
type Options struct {
	// Command is the program and its arguments.
	Command []string
	// Device is the simulated device; its capacity is the memory of the card.
	Device sim.Config
	// Context in bytes is the part of the card that CUDA's context and libraries take.
	Context device.Size
	// Allocator replaces PyTorch's own allocator.
	Allocator Allocator
	// Conf are PyTorch's settings, as in PYTORCH_ALLOC_CONF; "" leaves the environment as it is.
	Conf string
	// Steps ends the program after so many steps of its optimizers; 0: it runs to its end.
	Steps int
	// FastInit leaves the initial values of parameters out.
	FastInit bool
	// Policy places the segments: [sim.TopDown] as CUDA does on Linux, which is the default, or
	// [sim.FirstFit] as on WSL 2.
	Policy sim.Policy
	// Lazy completes an event only when something waits for it; otherwise it is complete at once.
	Lazy bool
	// Strict ends the program at a call that is not modelled.
	Strict bool
	// Keep in bytes bounds the copies whose contents are kept.
	Keep device.Size
	// CuDNN is the policy for the work areas of cuDNN.
	CuDNN WorkAreas
	// Watch, if set, is called after each event of the program.
	Watch          func(standin.Event)
	Stdin          io.Reader // of the program
	Stdout, Stderr io.Writer // of the program
}

// Process is what is known of a process of the program that used a device.
type Process struct {
	Number   int         // of the process
	Peak     device.Size // most bytes of one device
	Steps    uint64      // steps that its optimizers have ended
	Refused  int         // requests for which PyTorch found no memory
	FailedAt uint64      // step in which the last of them was made, counted from 1
	Asked    device.Size // bytes of the last of them
	Others   device.Size // bytes that other processes, with their contexts, held of the device then
	WentOn   bool        // it ended a step or took memory after the last of them
	Raised   bool        // an exception ended it
	Starved  bool        // that exception was PyTorch's for exhausted memory, or caused by one
	Waited   bool        // its allocator waited for events before it reused blocks of other streams
	Guessed  Guessed     // calls that took a work area of unknown size
	Areas    Areas       // these work areas
	Reads    []Read      // lines at which the program read unknown values, the most frequent first
	Snapshot string      // PyTorch's memory history, or the trace of an Allocator; "" for none

	held device.Size // bytes as last reported
}

// Exhausted reports whether the process ended because a request found no memory. If it ended
// without an exception, as by exit in a handler or in a child of multiprocessing, it did if it
// neither took memory nor ended a step after a refused request.
func (p *Process) Exhausted() bool {
	return p.Refused > 0 && (p.Starved || !p.Raised && !p.WentOn)
}

// Guessed counts the calls of libraries whose work area is unknown.
type Guessed struct {
	Convolutions uint64 `json:"convolution_count"` // of cuDNN
	Recurrent    uint64 `json:"recurrent_count"`   // layers of cuDNN
	Other        uint64 `json:"other_count"`       // calls of cuDNN, cuSOLVER, cuSPARSE and cuFFT
}

// Areas are the blocks of an allocator that were guessed work areas.
type Areas struct {
	Granted uint64              // number of blocks that it granted
	Numbers map[uint64]struct{} // which of them were such areas, counted from 1
}

// Read is a line of the program at which values that only a GPU would know were copied to the host.
type Read struct {
	// Line is the place, such as "train.py:12".
	Line string `json:"line"`
	// Times is the number of copies.
	Times uint64 `json:"read_count"`
	// Shape is the operator whose result has a size that depends on the values; "" for none.
	Shape string `json:"operator,omitempty"`
}

// Outcome is the result of a run.
type Outcome struct {
	Status    int           // exit status of the program; 128 + n if signal n ended it
	Torch     standin.Facts // what its PyTorch is
	Processes []*Process    // that used a device, as [ByNeed] sorts them
	// Peak is the most bytes that all processes held of the device at a time, with the contexts of all
	// but one of them.
	Peak device.Size
}

// ByNeed compares processes for [slices.SortFunc]: those that ended for lack of memory come first,
// then those that found no memory, then those with the highest peak.
func ByNeed(a, b *Process) int {
	rank := func(p *Process) int {
		switch {
		case p.Exhausted():
			return 0
		case p.Refused > 0:
			return 1
		}
		return 2
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.Peak, a.Peak))
}

// The endings of the files that a process leaves.
const (
	snapshotEnding = ".pickle"
	traceEnding    = ".trace"
	readsEnding    = ".reads"
	areasEnding    = ".areas"
)

// Run runs a program to its end. The files of the outcome are in dir, which the caller removes. The
// error says why the program could not run; a program that fails is no error.
func Run(ctx context.Context, dir string, o Options) (*Outcome, error) {
	program, err := interpreter(o.Command[0])
	if err != nil {
		return nil, err
	}
	site, err := sitePackages(program)
	if err != nil {
		return nil, err
	}
	out := &Outcome{}
	if out.Torch, err = standin.Scan(site); err != nil {
		return nil, err
	}
	libraries, err := out.Torch.Build()
	if err != nil {
		return nil, fmt.Errorf("stand-ins for CUDA: %w", err)
	}
	variables := environment(dir, libraries, o)
	ending := snapshotEnding
	if o.Allocator.Strategy != "" {
		more, err := o.Allocator.install(dir)
		if err != nil {
			return nil, err
		}
		variables, ending = append(variables, more...), traceEnding
	}
	server, err := serve(filepath.Join(dir, "socket"), o, out)
	if err != nil {
		return nil, err
	}
	for name, text := range map[string]string{
		"sitecustomize.py": sitecustomize, "vramyard_pools.py": pools, "vramyard_reads.py": python.Reads,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return nil, errors.Join(err, server.Close())
		}
	}
	cmd := exec.CommandContext(ctx, o.Command[0], o.Command[1:]...)
	cmd.Env = append(os.Environ(), variables...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = o.Stdin, o.Stdout, o.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	err = cmd.Run()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		out.Status, err = e.ExitCode(), nil
		if how, ok := e.Sys().(syscall.WaitStatus); ok && how.Signaled() {
			out.Status = 128 + int(how.Signal())
		}
	}
	if err := errors.Join(err, server.Close()); err != nil {
		return nil, err
	}
	slices.SortStableFunc(out.Processes, ByNeed)
	for i, p := range out.Processes {
		path := filepath.Join(dir, strconv.Itoa(p.Number)+ending)
		name := filepath.Join(dir, fmt.Sprintf("process%d", i)+ending) // a number that every run has
		switch err := os.Rename(path, name); {
		case err == nil:
			p.Snapshot = name
		case !errors.Is(err, os.ErrNotExist):
			return nil, err
		}
		if p.Reads, err = readsOf(filepath.Join(dir, strconv.Itoa(p.Number)+readsEnding)); err != nil {
			return nil, err
		}
		if p.Areas, err = areasOf(filepath.Join(dir, strconv.Itoa(p.Number)+areasEnding)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// areasOf reads the file of a process, of one number in each line: of all blocks, then of areas. A
// process that was killed leaves none.
func areasOf(path string) (a Areas, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return a, nil
	}
	a.Numbers = map[uint64]struct{}{}
	for i, word := range strings.Fields(string(text)) {
		n, failed := strconv.ParseUint(word, 10, 64)
		if err = errors.Join(err, failed); i == 0 {
			a.Granted = n
		} else {
			a.Numbers[n] = struct{}{}
		}
	}
	return a, err
}

// readsOf reads the file of a process. A process that was killed leaves none.
func readsOf(path string) (all []Read, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	slices.SortStableFunc(all, func(a, b Read) int { return cmp.Compare(b.Times, a.Times) })
	return all, err
}

// Shape returns the memory that PyTorch finds: without the part of CUDA's context, and with the
// system's order of addresses.
func (o *Options) Shape() sim.Config {
	c := o.Device
	c.Capacity -= min(o.Context, c.Capacity)
	c.Policy = cmp.Or(o.Policy, sim.TopDown)
	return c
}

// serve starts the device of a run and keeps the outcome up to date.
func serve(socket string, o Options, out *Outcome) (*standin.Server, error) {
	card, listed := sim.CardOf(o.Device)
	d, err := sim.New(o.Shape())
	if err != nil {
		return nil, err
	}
	name := card.Model
	if !listed {
		name = o.Device.Capacity.String() + " GPU"
	}
	known := map[int]*Process{}
	return standin.Listen(socket, standin.Config{
		Devices: []standin.Simulated{
			{Source: d, Card: cardOf(name+" (simulated by Vramyard)", o.Device.Capacity, card.Chip())},
		},
		Lazy: o.Lazy, Strict: o.Strict, Context: o.Context, Keep: o.Keep, Base: sim.Base,
		Watch: func(e standin.Event) {
			p := known[e.Process]
			if p == nil {
				p = &Process{Number: e.Process}
				known[e.Process] = p
				out.Processes = append(out.Processes, p)
			}
			p.note(e)
			out.Peak = max(out.Peak, e.All)
			if o.Watch != nil {
				o.Watch(e)
			}
		},
	})
}

// note adds an event.
func (p *Process) note(e standin.Event) {
	p.Peak = max(p.Peak, e.Peak)
	p.WentOn = p.WentOn || e.Reserved > p.held
	p.held = e.Reserved
	switch e.Kind {
	case standin.StepEnded:
		p.Steps, p.WentOn = e.Number, true
	case standin.OutOfMemory:
		p.Refused++
		p.FailedAt, p.Asked, p.Others, p.WentOn = p.Steps+1, device.Size(e.Number), e.All-e.Reserved, false
	case standin.Raised:
		p.Raised, p.Starved = true, e.Number == 1
	case standin.Waited:
		p.Waited = true
	case standin.GuessedConvolutions:
		p.Guessed.Convolutions = e.Number
	case standin.GuessedRecurrent:
		p.Guessed.Recurrent = e.Number
	case standin.GuessedOther:
		p.Guessed.Other = e.Number
	}
}

// cardOf returns what a program is told of a GPU.
func cardOf(name string, memory device.Size, chip sim.Chip) standin.Card {
	c := standin.Card{
		Memory: uint64(memory), Major: int32(chip.Major), Minor: int32(chip.Minor), Processors: int32(chip.Processors),
		Threads: int32(
			chip.Threads,
		), Blocks: int32(chip.Blocks), SharedBlock: 48 << 10, SharedOptIn: int32(chip.SharedBlock),
		SharedProcessor: int32(chip.SharedProcessor), Registers: 64 << 10, L2: int32(chip.L2), Bus: int32(chip.Bus),
		Clock: 1_500_000, MemoryClock: 1_500_000,
	}
	copy(c.Name[:len(c.Name)-1], name)
	return c
}

// environment returns the variables that a run adds.
func environment(dir string, libraries []string, o Options) []string {
	list := func(parts ...string) string { return strings.Join(parts, string(os.PathListSeparator)) }
	path := dir
	if before := os.Getenv("PYTHONPATH"); before != "" {
		path = list(dir, before)
	}
	env := []string{
		"PYTHONPATH=" + path,
		"VRAMYARD_SOCKET=" + filepath.Join(dir, "socket"),
		"VRAMYARD_STANDINS=" + list(libraries...),
		"VRAMYARD_SNAPSHOTS=" + dir,
		"VRAMYARD_CUDNN=" + o.CuDNN.String(),
	}
	if o.Steps > 0 {
		env = append(env, "VRAMYARD_STEPS="+strconv.Itoa(o.Steps))
	}
	if o.FastInit {
		env = append(env, "VRAMYARD_FAST_INIT=1")
	}
	if o.Conf != "" { // the first name is read since 2.10
		env = append(env, "PYTORCH_ALLOC_CONF="+o.Conf, "PYTORCH_CUDA_ALLOC_CONF="+o.Conf)
	}
	if _, err := exec.LookPath("addr2line"); err != nil && os.Getenv("TORCH_SYMBOLIZE_MODE") == "" {
		env = append(env, "TORCH_SYMBOLIZE_MODE=dladdr") // PyTorch would call addr2line
	}
	return env
}

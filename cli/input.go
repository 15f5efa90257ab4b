package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/corpus"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/internal/budget"
	"github.com/vramyard/vramyard/internal/nearest"
)

// errNone refuses a number below 1.
var errNone = errors.New("want at least 1")

// errNoNames refuses an empty list.
var errNoNames = errors.New("want at least one")

// flagError names the flag that an error belongs to. It returns nil for nil.
func flagError(flag string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("--%s: %w", flag, err)
}

// mustHave makes a flag required.
func mustHave(c *cobra.Command, flag string) {
	if err := c.MarkFlagRequired(flag); err != nil {
		panic(err) // the command does not define the flag
	}
}

// sameFile reports whether two paths lead to one file, which need not exist.
func sameFile(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	if errX == nil && errY == nil {
		return os.SameFile(x, y)
	}
	absX, errX := filepath.Abs(a)
	absY, errY := filepath.Abs(b)
	return errX == nil && errY == nil && absX == absY
}

// onceFromStdin returns an error if more than one trace is standard input.
func onceFromStdin(paths []string) error {
	if i := slices.Index(paths, "-"); i >= 0 && slices.Contains(paths[i+1:], "-") {
		return errors.New("standard input can be read only once")
	}
	return nil
}

// addPart adds the flag that selects a trace of a file that holds several.
func addPart(c *cobra.Command, o *formats.Options) {
	c.Flags().StringVar(&o.Part, "part", "", "device or allocator to take from a file that has several")
	addMemory(c, &o.Memory)
}

// memory is the flag --memory, which bounds the memory for the content of a file.
type memory device.Size

// addMemory adds the flag to a command that reads files.
func addMemory(c *cobra.Command, m *device.Size) {
	*m = budget.Default
	c.Flags().Var((*memory)(m), "memory", "memory limit for reading, such as 4GiB; a larger file is refused")
}

func (m *memory) String() string { return device.Size(*m).String() }

func (m *memory) Type() string { return "size" }

func (m *memory) Set(text string) error {
	n, err := device.ParseSize(text)
	if err == nil && n < device.MiB {
		err = fmt.Errorf("%v: want at least 1MiB, such as 4GiB", n)
	}
	if err != nil {
		return err
	}
	*m = memory(n)
	return nil
}

// userLimit is the soft memory limit of the environment, GOMEMLIMIT, which a command only lowers.
var userLimit = debug.SetMemoryLimit(-1)

// collectWithin raises the soft memory limit of the process to the present heap and the memory of
// one more file, until the command ends. The garbage collector then keeps the garbage of reading
// and of replays within that. The budget of the file, which is counted, decides what is refused.
func collectWithin(m device.Size) {
	held := heap() // without the garbage of the file before
	debug.SetMemoryLimit(min(userLimit, int64(held+min(m, device.TiB))))
}

// heap collects the garbage and returns the bytes that stay on the heap.
func heap() device.Size {
	runtime.GC()
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return device.Size(now.HeapAlloc)
}

// heapLeft returns the bytes between the current heap and the soft memory limit: the budget of
// concurrent replays.
func heapLeft() device.Size {
	most := device.Size(debug.SetMemoryLimit(-1))
	return most - min(heap(), most-1)
}

// advised adds the helpful flag to an error about a file: --memory for a larger bound, --part
// for one of its parts.
func advised(err error) error {
	if e, ok := errors.AsType[*budget.Error](err); ok {
		return fmt.Errorf("%w: --memory %v allows twice as much", err, 2*e.Limit)
	}
	if e, ok := errors.AsType[*trace.PartsError](err); ok {
		return fmt.Errorf("%w: take one with --part %s", err, report.ShellWord(e.Parts[0].Name))
	}
	return err
}

// openFile opens a file to read. Its error begins with the path, like errors about contents.
func openFile(path string) (*os.File, error) {
	f, err := os.Open(path)
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return nil, fmt.Errorf("%s: %w", path, p.Err)
	}
	return f, err
}

// readFile calls read with a file, or with standard input for "-", and with the memory that it may
// take.
func readFile[T any](
	cmd *cobra.Command, path string, most device.Size,
	read func(name string, in io.Reader, memory *budget.Budget) (T, error),
) (result T, err error) {
	collectWithin(most)
	if path == "-" {
		return read("stdin", cmd.InOrStdin(), budget.New(most))
	}
	file, err := openFile(path)
	if err != nil {
		return result, err
	}
	defer file.Close() // only read from: nothing can be lost
	return read(path, file, budget.New(most))
}

// addSource adds the flags of reading a trace.
func addSource(c *cobra.Command, o *formats.Options) {
	c.Flags().StringVar(&o.Dialect, "dialect", "", "format of the trace if its content is ambiguous: bfc, xdl or torch")
	addPart(c, o)
}

// mostGenerated bounds the events of a generated trace that is kept in memory, where a replay takes
// less than half of the time.
const mostGenerated = 1 << 22

// openSource is openTrace for callers that only walk the trace: a long trace stays in its file, if
// the format permits. A [workload.Named] trace, such as w1-live1000, is generated.
func openSource(path string, o formats.Options, stdin io.Reader) (trace.Source, error) {
	if _, err := os.Stat(path); path == "-" || err != nil {
		if w, ok, err := workload.Named(path); ok && err == nil && w.Events() > mostGenerated {
			return w.Source(), nil
		}
		return openTrace(path, o, stdin)
	}
	collectWithin(o.Memory)
	return formats.OpenSource(path, o)
}

// openInside opens a trace of the corpus, or a [workload.Named] one, and returns nil for any other
// name.
func openInside(name string, o formats.Options) (*trace.Trace, error) {
	if t, err := openNamed(name, o); t != nil || err != nil {
		return t, err
	}
	w, ok, err := workload.Named(name)
	if !ok || err != nil {
		return nil, err
	}
	return trace.Cut(w.Source(), trace.Span{End: w.Events()}, 0)
}

// openTrace reads a file of any known format, standard input for "-", or, if no such file exists,
// the trace of the corpus or the [workload.Named] one of that name.
func openTrace(path string, o formats.Options, stdin io.Reader) (*trace.Trace, error) {
	collectWithin(o.Memory)
	if path == "-" {
		return formats.Read(stdin, "stdin", o)
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if t, err := openInside(path, o); t != nil || err != nil {
			return t, err
		}
		if near := nearest.Name(path, corpus.Names()); near != "" {
			return nil, fmt.Errorf("%s: no such file: did you mean %q, a trace of the corpus?", path, near)
		}
	}
	return formats.Open(path, o)
}

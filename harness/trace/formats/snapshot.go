package formats

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/torch"
	"github.com/vramyard/vramyard/internal/budget"
	"github.com/vramyard/vramyard/internal/fileio"
)

// snapshotFormat is the output of PyTorch's _dump_snapshot.
var snapshotFormat = Format{
	Name:      torch.Format,
	Framework: "PyTorch",
	Doc:       "a memory snapshot of PyTorch (pickle or JSON)",
	Absent: "which other streams used a block, calls that empty the cache or set bounds, the capacity of the device, " +
		"order and age of the blocks live at the start, memory outside the allocator",
	Recognize: isSnapshot,
	Read:      readSnapshot,
	Parts:     true,
}

// isSnapshot reports whether a file begins like a snapshot: as a pickle, or as JSON with the keys
// of a snapshot or of its segments.
func isSnapshot(head []byte) bool {
	if !torch.Recognize(head) {
		return false
	}
	if head[0] == pickleMark {
		return true
	}
	keys, list := keysIn(head)
	known := []string{"segments", "device_traces", "allocator_settings"}
	if list == "{" {
		known = []string{"total_size", "allocated_size"}
	}
	return list != "[" && slices.ContainsFunc(keys, func(k string) bool { return slices.Contains(known, k) })
}

// pickleMark is the first byte of a pickle.
const pickleMark = 0x80

// ErrNoSnapshot is the error of [ReadSnapshot] for files of another format.
var ErrNoSnapshot = errors.New("is no snapshot of PyTorch")

// ReadSnapshot reads a PyTorch snapshot, compressed or not. It also returns the header of its
// traces, without the data of a device. Only the options Watch and Memory have an effect.
//
// Errors: as [Read]; ErrNoSnapshot.
func ReadSnapshot(r io.Reader, name string, o Options) (*torch.Snapshot, trace.Header, error) {
	return readOnly(r, name, o, budget.New(o.Memory), readWhole)
}

// readOnly reads a file with a function, if it is a snapshot.
func readOnly(
	r io.Reader, name string, o Options, memory *budget.Budget,
	read func(*Input, *budget.Budget) (*torch.Snapshot, error),
) (*torch.Snapshot, trace.Header, error) {
	plain, err := fileio.NewReader(o.withProgress(r))
	if err != nil {
		return nil, trace.Header{}, trace.FileError(name, err)
	}
	defer plain.Close()
	in := &Input{Name: name, plain: plain, sum: sha256.New()}
	head, err := in.plain.Peek(headBytes)
	if err == nil {
		err = notATrace(head)
	}
	if err == nil && !isSnapshot(head) {
		err = ErrNoSnapshot
	}
	var s *torch.Snapshot
	if err == nil {
		s, err = read(in, memory)
	}
	if err != nil {
		return nil, trace.Header{}, trace.FileError(name, err)
	}
	return s, in.header(torch.Format), nil
}

// unknownChange is listed under [trace.AbsentKey] of a joined trace.
const unknownChange = "when the settings changed between two files (placed at the end of the earlier one), and " +
	"changes that were undone between two files"

var errStdin = errors.New("standard input cannot be joined: want files")

// Join reads PyTorch snapshots of one process, in any order, and returns the trace of their joined
// history; see [torch.Join]. The header has the name of the earliest file, and under "joined" all
// names. Memory bounds all files together.
//
// Errors: as [Read] for a snapshot; ErrNoSnapshot; as [torch.Join].
func Join(paths []string, o Options) (*trace.Trace, error) {
	memory := budget.New(o.Memory)
	var files []torch.File
	sums := map[*torch.Snapshot]string{}
	for _, path := range paths {
		if path == "-" {
			return nil, trace.FileError(path, errStdin)
		}
		f, err := os.Open(path)
		if err != nil {
			return nil, trace.FileError(path, err)
		}
		s, h, err := readOnly(f, path, o, memory, func(in *Input, m *budget.Budget) (*torch.Snapshot, error) {
			return torch.Read(in, m)
		})
		_ = f.Close() // read only: no error matters
		if err != nil {
			return nil, err
		}
		files, sums[s] = append(files, torch.File{Name: path, Snapshot: s}), h.Hash
	}
	s, err := torch.Join(files, memory)
	if err != nil {
		return nil, err
	}
	in := &Input{Options: o, Name: files[0].Name, sum: sha256.New(), budget: memory}
	var names []string
	for _, f := range files {
		in.sum.Write([]byte(sums[f.Snapshot]))
		names = append(names, trace.BaseName(f.Name))
	}
	joined := trace.Pair{Key: "joined", Value: strings.Join(names, ", ")}
	t, err := snapshotTrace(in, s, []trace.Pair{joined}, unknownChange)
	return snapshotFormat.complete(in.Name, t, err)
}

// readWhole reads a snapshot and charges the memory that callers derive from its entries.
func readWhole(in *Input, memory *budget.Budget) (*torch.Snapshot, error) {
	const each = 128 // bytes per entry: its step and a verification's record
	s, err := torch.Read(in, memory)
	if err != nil {
		return nil, err
	}
	for i := range s.Devices {
		if err := memory.Take(int64(s.Devices[i].History.Len()) * each); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func readSnapshot(in *Input) (*trace.Trace, error) {
	s, err := torch.Read(in, in.budget)
	if err != nil {
		return nil, err
	}
	return snapshotTrace(in, s, nil)
}

// snapshotTrace returns the trace of a device: the selected one, or the only one with a history, or
// the only one. The header begins with first and lists also the unknown facts.
func snapshotTrace(in *Input, s *torch.Snapshot, first []trace.Pair, unknown ...string) (*trace.Trace, error) {
	results, err := torch.TracesWithin(s, in.budget)
	if err != nil {
		return nil, err
	}
	if len(results) == 0 {
		return nil, errors.New("has neither a history nor live blocks")
	}
	parts := make([]part, len(results))
	for i, r := range results {
		parts[i] = part{trace.Part{Name: torch.PartOf(r.GPU), Events: len(r.Trace.Events)}, r.Report.Requests == 0}
	}
	chosen, rest, err := choose(parts, in.Part)
	if err != nil {
		return nil, err
	}
	r := results[chosen]
	h := in.header(torch.Format)
	h.Meta = append(append(first, leftOut(parts[chosen].Name, rest)...), r.Trace.Header.Meta...)
	unknown = append(r.Report.Unknown, unknown...)
	h.Meta = append(h.Meta, trace.Pair{Key: trace.AbsentKey, Value: strings.Join(unknown, "; ")})
	r.Trace.Header = h
	if in.Snapshot != nil {
		in.Snapshot(s, r.Timeline)
	}
	in.reportSnapshot(r)
	return r.Trace, nil
}

// reportSnapshot passes the inconsistencies of a device to Options.Doubt.
func (in *Input) reportSnapshot(r torch.Result) {
	if in.Doubt == nil {
		return
	}
	for i := range r.Report.Findings {
		f := &r.Report.Findings[i]
		in.Doubt(f.Check(), &trace.Error{File: in.Name, Err: errors.New(f.String())})
	}
	if n, entry, addr := r.Timeline.Overlaps(); n > 0 {
		err := fmt.Errorf("%d allocations overlap a live one; the first at %#x in entry %d", n, addr, entry)
		in.Doubt("overlap", &trace.Error{File: in.Name, Err: err})
	}
}

package formats

import (
	"crypto/sha256"
	"errors"
	"io"
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
		s, err = readWhole(in, budget.New(o.Memory))
	}
	if err != nil {
		return nil, trace.Header{}, trace.FileError(name, err)
	}
	return s, in.header(torch.Format), nil
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

// readSnapshot reads the trace of a device: the selected one, or the only one with a history, or
// the only one.
func readSnapshot(in *Input) (*trace.Trace, error) {
	s, err := torch.Read(in, in.budget)
	if err != nil {
		return nil, err
	}
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
	h.Meta = append(leftOut(parts[chosen].Name, rest), r.Trace.Header.Meta...)
	h.Meta = append(h.Meta, trace.Pair{Key: trace.AbsentKey, Value: strings.Join(r.Report.Unknown, "; ")})
	r.Trace.Header = h
	if in.Snapshot != nil {
		in.Snapshot(s, r.Timeline)
	}
	return r.Trace, nil
}

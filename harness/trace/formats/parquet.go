package formats

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/parquet"
	"github.com/vramyard/vramyard/internal/budget"
)

// parquetFormat is this project's own format for long traces.
var parquetFormat = Format{
	Name: parquet.Format, Doc: "columns in a Parquet file, for long traces", Recognize: parquet.Is, Read: readParquet,
	Write: parquet.Write,
}

func readParquet(in *Input) (*trace.Trace, error) {
	at, size := in.File, in.Size
	if at == nil {
		data, err := in.all()
		if err != nil {
			return nil, fmt.Errorf("a Parquet file in a pipe or compressed once more: %w", err)
		}
		at, size = bytes.NewReader(data), int64(len(data))
	}
	f, err := parquet.Open(at, size, in.Name, in.budget)
	if err != nil {
		return nil, err
	}
	return f.Trace()
}

// all reads the whole content into memory, for a format with random access.
func (in *Input) all() (data []byte, err error) {
	for {
		if data, err = budget.Grow(in.budget, data, bytes.MinRead); err != nil {
			return nil, err
		}
		n, err := in.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// StreamedFrom is the number of events from which [OpenSource] leaves a trace in its file. A replay
// of that many events from memory takes 88 bytes each, 352 MiB; walking the file takes more time.
const StreamedFrom = 1 << 22

// OpenSource opens the trace in a file like [Open], but does not load a long Parquet file into
// memory. The file then stays open as long as the source is used.
func OpenSource(path string, o Options) (trace.Source, error) {
	// A pipe must not be opened to probe it: closing it would fail its writer and lose data.
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && o.Dialect == "" && o.Part == "" {
		if f, err := streamed(path, info.Size(), o); err != nil {
			return nil, err
		} else if f != nil {
			return f, nil
		}
	}
	t, err := Open(path, o)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// streamed opens a regular file for walking. It returns nil if the file is not walked.
func streamed(path string, size int64, o Options) (*parquet.File, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, trace.FileError(path, err)
	}
	keep := false
	defer func() {
		if !keep {
			_ = in.Close() // read only: no error matters
		}
	}()
	var head [4]byte
	if _, err := in.ReadAt(head[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, trace.FileError(path, err)
	}
	if !parquet.Is(head[:]) {
		return nil, nil
	}
	f, err := parquet.Open(in, size, path, budget.New(o.Memory))
	if err != nil || !f.Streams() || f.Head().Events < StreamedFrom {
		return nil, err
	}
	keep = true
	return f, nil
}

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// filePairs is the number of pairs of W1 in the measured file, filesLive that of its live blocks.
const (
	filePairs = 5_000_000
	filesLive = 10_000
)

// filesFile is the raw file of the step files.
type filesFile struct {
	header

	Events  int          `json:"events"`
	Readers []fileReader `json:"readers"`
}

// fileReader holds the processes of one program, by round.
type fileReader struct {
	Name    string    `json:"name"`
	Version string    `json:"version,omitempty"` // of a library of Python
	Seconds []float64 `json:"cpu_s"`             // CPU time of all threads
	Bytes   []float64 `json:"peak_resident_bytes"`

	command []string
	peak    func(out []byte) (string, error) // the peak of live bytes that it printed
}

func (f *filesFile) sound() bool {
	return f.Schema == schema && f.Events > 0 && len(f.Readers) > 0 && len(f.Readers[0].Seconds) > 0
}

// takeFiles writes W1 to a Parquet file and measures programs that compute its peak of live bytes,
// each in a process of its own, in interleaved rounds. Libraries that Python lacks are left out. All
// must find the same peak. It needs Linux.
func takeFiles(o options) error {
	dir, err := os.MkdirTemp("", "files")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // nothing of it is wanted
	ours, path := filepath.Join(dir, "vramyard"), filepath.Join(dir, "w1.parquet")
	for _, line := range [][]string{
		{"go", "build", "-C", "../..", "-o", ours, "./cmd/vramyard"},
		{ours, "trace", "gen", "w1", "--live", strconv.Itoa(filesLive), "--pairs", strconv.Itoa(filePairs), path},
	} {
		if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(line, " "), err, out)
		}
	}
	f := filesFile{Events: 2*filePairs + filesLive, Readers: []fileReader{
		{Name: "vramyard trace info", command: []string{ours, "trace", "info", "--json", "-", path}, peak: peakOf},
		{Name: "vramyard replay --strategy tlsf",
			command: []string{ours, "replay", "--strategy", "tlsf", "--json", "-", path}, peak: peakOf},
	}}
	if f.header, err = newHeader(); err != nil {
		return err
	}
	for _, library := range []string{"polars", "duckdb", "pandas"} {
		version, err := exec.Command("python3", "-c", "import "+library+"; print("+library+".__version__)").Output()
		if err != nil {
			fmt.Fprintln(o.log, "left out:", library)
			continue
		}
		f.Readers = append(f.Readers, fileReader{Name: library, Version: strings.TrimSpace(string(version)),
			command: []string{"python3", "peak.py", library, path},
			peak:    func(out []byte) (string, error) { return strings.TrimSpace(string(out)), nil }})
	}
	want := ""
	for range o.rounds {
		for i := range f.Readers {
			got, err := f.Readers[i].take()
			if err != nil {
				return err
			}
			if want == "" {
				want = got
			}
			if got != want {
				return fmt.Errorf("%s finds a peak of %s bytes: want %s", f.Readers[i].Name, got, want)
			}
		}
	}
	return store(o, "files.json", f)
}

// take runs the program once and returns the peak of live bytes.
func (r *fileReader) take() (string, error) {
	var said bytes.Buffer
	c := exec.Command(r.command[0], r.command[1:]...)
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", r.Name, err, said.String())
	}
	resident, err := peakResident(c.ProcessState)
	if err != nil {
		return "", fmt.Errorf("%s: %w", r.Name, err)
	}
	r.Seconds = append(r.Seconds, (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds())
	r.Bytes = append(r.Bytes, resident)
	return r.peak(out)
}

// ourPeak matches the peak in our JSON, by its key in each command.
var ourPeak = regexp.MustCompile(`"(?:peak_live_bytes|lower_bound_bytes)": *([0-9]+)`)

// peakOf returns the peak in our JSON.
func peakOf(out []byte) (string, error) {
	if found := ourPeak.FindSubmatch(out); found != nil {
		return string(found[1]), nil
	}
	return "", fmt.Errorf("no peak in %.100q", out)
}

// filesTable compares the programs that read a trace.
func (f *figures) filesTable() string {
	var rows [][]string
	for _, r := range f.files.Readers {
		rows = append(rows, []string{strings.TrimSpace(r.Name + " " + r.Version), fixed(slices.Min(r.Seconds), 2),
			fixed(slices.Min(r.Seconds)/slices.Min(f.files.Readers[0].Seconds), 2),
			fixed(slices.Max(r.Bytes)/1e6, 0)})
	}
	return fmt.Sprintf("%d events, %d rounds at `%s`, [files.json](../benchmarks/results/files.json):\n\n",
		f.files.Events, len(f.files.Readers[0].Seconds), f.files.Commit) +
		markdown([]string{"program", "CPU s, minimum", "/ first", "resident MB, maximum"}, rows)
}

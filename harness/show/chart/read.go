package chart

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/diff"
	"github.com/vramyard/vramyard/internal/budget"
	"github.com/vramyard/vramyard/internal/fileio"
)

// maxBytes bounds the decompressed size of a file, as package diff does.
const maxBytes = 1 << 26

// mostValues bounds the values in a file, counted by commas: enough for 50,000 runs. A value takes
// up to some hundred bytes in memory.
const mostValues = 2_000_000

// Source is the content of one file.
type Source struct {
	name   string // file name
	form   Result
	result *diff.Result
	series *replay.Series // of a replay; may be nil
}

// Read reads a result, compressed or not. Memory bounds what it may occupy. The name is used in
// messages and legends.
func Read(name string, r io.Reader, memory *budget.Budget) (*Source, error) {
	s, err := read(name, r, memory)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// read is Read without the name in its errors.
func read(name string, r io.Reader, memory *budget.Budget) (*Source, error) {
	plain, err := fileio.NewReader(r)
	if err != nil {
		return nil, err
	}
	defer plain.Close()
	text, err := io.ReadAll(io.LimitReader(plain, maxBytes+1))
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(text, []byte(",")); n > mostValues {
		return nil, fmt.Errorf("%d values: want at most %d", n, mostValues)
	}
	if start := bytes.TrimLeft(text, " \t\r\n"); len(start) > 0 && start[0] != '{' && start[0] != '[' {
		if text, err = resultOfCSV(text, memory); err != nil {
			return nil, err
		}
	}
	s := &Source{name: name}
	if s.form, err = formOf(text); err != nil {
		return nil, err
	}
	listing := text
	switch s.form.Command {
	case cmdTune:
		listing, err = runsOfTune(text)
	case cmdOffline:
		listing, err = runsOfOffline(text)
	}
	if err != nil {
		return nil, err
	}
	if s.result, err = diff.Read(bytes.NewReader(listing), memory); err != nil {
		return nil, err
	}
	if s.form.Command == cmdReplay {
		var content struct {
			Series *replay.Series `json:"series"`
		}
		if err := json.Unmarshal(text, &content); err != nil {
			return nil, err
		}
		s.series = content.Series
	}
	return s, s.check()
}

// formOf returns the form of a JSON result. A missing schema is reported by the packages that
// decode it.
func formOf(text []byte) (Result, error) {
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(text, &head); err != nil || head.Schema == "" {
		return Result{}, nil
	}
	asJSON, _ := Drawn()
	for _, r := range Results() {
		if r.Schema != head.Schema {
			continue
		}
		if len(r.Kinds()) == 0 {
			return r, fmt.Errorf("results of %s cannot be drawn: %s", r.Command, taken())
		}
		return r, nil
	}
	return Result{}, fmt.Errorf("schema %.60q: want the result of %s", head.Schema, asJSON)
}

// check rejects a series whose events are out of order.
func (s *Source) check() error {
	if s.series == nil {
		return nil
	}
	for i, p := range s.series.Points {
		if p.Event < 0 || i > 0 && p.Event <= s.series.Points[i-1].Event {
			return fmt.Errorf(`"series", point %d: event %d does not follow the one before`, i, p.Event)
		}
	}
	return nil
}

func errCSV() error {
	asJSON, asCSV := Drawn()
	return fmt.Errorf("not a result: want --json output of %s, or --csv output of %s", asJSON, asCSV)
}

// cellBytes is the memory of a CSV cell, apart from its entry in the run's map.
const cellBytes = 64

// resultOfCSV converts a result from CSV to JSON.
func resultOfCSV(text []byte, memory *budget.Budget) ([]byte, error) {
	c := csv.NewReader(bytes.NewReader(text))
	names, err := c.Read()
	if err != nil || !slices.Contains(names, "strategy") {
		return nil, errCSV()
	}
	schema := ""
	for _, r := range Results() {
		switch has := r.column != "" && slices.Contains(names, r.column); {
		case has && !r.CSV:
			return nil, fmt.Errorf("the CSV table of %s cannot be drawn: want its --json output", r.Command)
		case has:
			schema = r.Schema
		}
	}
	if schema == "" {
		return nil, errCSV()
	}
	for i, n := range names {
		if slices.Contains(names[:i], n) {
			return nil, fmt.Errorf("duplicate column %q", n)
		}
	}
	runs := []map[string]json.RawMessage{}
	for {
		cells, err := c.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		line, _ := c.FieldPos(0)
		if other := slices.Index(names, "replayed_as"); other >= 0 && cells[other] != cells[slices.Index(names, "label")] {
			continue // its figures belong to another row
		}
		if err := memory.Take(int64(len(cells)) * (budget.EntrySize[string, json.RawMessage]() + cellBytes)); err != nil {
			return nil, err
		}
		run := map[string]json.RawMessage{}
		for i, cell := range cells {
			if run[names[i]], err = valueOfCell(names[i], cell); err != nil {
				return nil, fmt.Errorf("line %d, %q: %w", line, names[i], err)
			}
		}
		runs = append(runs, run)
	}
	if !bytes.HasSuffix(text, []byte("\n")) {
		return nil, errors.New("the last line has no line end: the file is truncated")
	}
	return json.Marshal(map[string]any{"schema": schema, "runs": runs})
}

// textColumns are the columns of text; the others hold JSON or are empty.
var textColumns = []string{"trace", "trace_sha256", "strategy", "version", "provenance.version", "provenance.commit",
	"label", "environment", "replayed_as",
	"workload", "workload_hash", "model", "log_sha256", "ladder", "heuristic", "liveness", "verdict", "evict_seq_sha256",
	"clock", "machine.go", "machine.os", "machine.arch", "machine.cpu"}

func valueOfCell(column, cell string) (json.RawMessage, error) {
	switch {
	case slices.Contains(textColumns, column):
		return json.Marshal(cell)
	case cell == "":
		return json.RawMessage("null"), nil
	case !json.Valid([]byte(cell)):
		return nil, fmt.Errorf("%.40q: want a number", cell)
	}
	return json.RawMessage(cell), nil
}

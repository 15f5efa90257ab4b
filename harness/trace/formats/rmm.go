package formats

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/budget"
)

// rmmFormat is the log format of RAPIDS Memory Manager.
var rmmFormat = Format{
	Name:   "rmm",
	Doc:    "the CSV log of RMM's logging adaptor, or of very old versions",
	Header: rmmHeader,
	Absent: "the date, when memory freed on a stream becomes free, which requests a pool above served",
	Recognize: func(head []byte) bool {
		line, _, _ := bytes.Cut(bytes.TrimPrefix(head, utf8BOM), newline)
		header := string(bytes.TrimRight(line, "\r"))
		return header == rmmHeader || strings.HasPrefix(header, rmmOldHeader)
	},
	Read:  readRMM,
	Parts: true,
}

var (
	utf8BOM = []byte("\xef\xbb\xbf")
	utf16LE = []byte("\xff\xfe")
	utf16BE = []byte("\xfe\xff")
	newline = []byte("\n")
	comma   = []byte(",")
)

// The columns of a log, and of very old logs, which may have one or two more columns.
const (
	rmmHeader    = "Thread,Time,Action,Pointer,Size,Stream"
	rmmOldHeader = "Event Type,Device ID,Address,Stream,Size (bytes),Free Memory,Total Memory,Current Allocs,Start,End"
)

// rmmReader reads one log.
type rmmReader struct {
	memory  *budget.Budget
	lines   *trace.Lines
	logs    logs
	texts   texts
	threads map[string]uint32 // thread numbers, by name in the log
	streams map[uint64]device.Stream
	handles []uint64
	day     int64 // nanoseconds of the days that have passed
	last    int64 // time of day of the previous line
	zero    int   // number of requests of 0 bytes
}

// readRMM reads a log. Its lines are in the order of the calls of all threads.
func readRMM(in *Input) (*trace.Trace, error) {
	lines, err := trace.NewLines(in, in.Name, in.budget)
	if err != nil {
		return nil, err
	}
	defer lines.Close()
	header, err := lines.Next()
	if err != nil {
		return nil, err
	}
	r := &rmmReader{
		memory: in.budget, lines: lines, logs: in.logs(), texts: texts{memory: in.budget},
		threads: map[string]uint32{}, streams: map[uint64]device.Stream{},
	}
	row := r.row
	columns := strings.Count(string(header), ",") + 1
	if string(header) != rmmHeader {
		row = r.oldRow
	}
	if err := in.rows(lines, columns, row); err != nil {
		return nil, err
	}
	h := in.header("rmm")
	h.Hash = lines.Hash()
	h.Meta = append(h.Meta, r.meta()...)
	return r.logs.trace(in, h, &r.texts, errors.New("the log has no lines"))
}

// rows calls row with the cells of every line that is not empty.
func (in *Input) rows(lines *trace.Lines, columns int, row func(cells []string) error) error {
	for {
		line, err := lines.Next()
		if err != nil {
			return err
		}
		if line == nil {
			in.warn(lines.Truncated())
			return nil
		}
		if len(line) == 0 {
			continue
		}
		if n := bytes.Count(line, comma) + 1; n != columns { // before allocating the cells
			err = fmt.Errorf("%d columns: want %d", n, columns)
		} else {
			err = row(strings.Split(string(line), ","))
		}
		if err != nil {
			return lines.ErrorAt(lines.Line(), err)
		}
	}
}

// meta returns header pairs with facts that are not in the events.
func (r *rmmReader) meta() (pairs []trace.Pair) {
	if n := len(r.threads); n > 0 {
		pairs = append(pairs, trace.Pair{Key: "threads", Value: strconv.Itoa(n)})
	}
	if r.zero > 0 {
		pairs = append(pairs, trace.Pair{Key: "requests_of_0_bytes_left_out", Value: strconv.Itoa(r.zero)})
	}
	const most = 64
	for i, h := range r.handles[:min(len(r.handles), most)] {
		pairs = append(pairs, trace.Pair{Key: fmt.Sprintf("stream_%d", i+1), Value: fmt.Sprintf("%#x", h)})
	}
	return pairs
}

// row reads a line of the adaptor: thread, time, action, pointer, size, stream.
func (r *rmmReader) row(cells []string) error {
	time, err := r.time(cells[1])
	if err != nil {
		return err
	}
	size, err := rmmSize(cells[4])
	if err != nil {
		return err
	}
	stream, err := r.stream(cells[5])
	if err != nil {
		return err
	}
	thread, err := r.thread(cells[0])
	if err != nil {
		return err
	}
	c := call{time: time, size: size, stream: stream, thread: thread}
	switch cells[2] {
	case "allocate":
		c.kind = trace.Alloc
	case "free":
		c.kind = trace.Free
	case "allocate failure":
		c.kind = trace.Refused
	default:
		return fmt.Errorf("action %s: want allocate, free or allocate failure", clip([]byte(cells[2])))
	}
	if c.addr, err = rmmPointer(cells[3]); err != nil {
		return err
	}
	return r.add("device", c)
}

// thread returns the number of a thread, counted from 1 in order of appearance. Threads beyond the
// limit are unknown.
func (r *rmmReader) thread(name string) (uint32, error) {
	const manyThreads = 1 << 16
	n := r.threads[name]
	if n > 0 || len(r.threads) == manyThreads {
		return n, nil
	}
	if err := r.memory.Take(int64(len(name))); err != nil {
		return 0, err
	}
	n = uint32(len(r.threads) + 1)
	return n, budget.Put(r.memory, r.threads, strings.Clone(name), n) // a copy, which does not keep the whole line alive
}

// oldRow reads a line of a very old log: event, device, address, stream, size, free, total, count,
// start, end and more.
func (r *rmmReader) oldRow(cells []string) error {
	id, err := strconv.ParseUint(cells[1], 10, 32)
	if err != nil {
		return fmt.Errorf("device %s: want its number", clip([]byte(cells[1])))
	}
	c := call{}
	if c.addr, err = rmmPointer(cells[2]); err != nil {
		return err
	}
	if c.stream, err = r.stream(cells[3]); err != nil {
		return err
	}
	if c.size, err = rmmSize(cells[4]); err != nil {
		return err
	}
	if c.time, err = r.time(cells[8]); err != nil {
		return err
	}
	switch cells[0] {
	case "Alloc":
		c.kind = trace.Alloc
	case "Free":
		c.kind = trace.Free
	default:
		return fmt.Errorf("event type %s: want Alloc or Free", clip([]byte(cells[0])))
	}
	return r.add("cuda:"+strconv.FormatUint(id, 10), c)
}

// add adds a call. A null address belongs to a request of 0 bytes, which has no block.
func (r *rmmReader) add(part string, c call) error {
	if c.kind != trace.Refused && c.addr == 0 {
		if c.kind == trace.Alloc && c.size > 0 {
			return errors.New("an allocation needs an address")
		}
		r.zero++
		return nil
	}
	p, err := r.logs.part(part, false)
	if err != nil {
		return err
	}
	c.line = r.lines.Line()
	return p.add(&c)
}

// time converts a time of day (hh:mm:ss with . or : before six digits) or a number of seconds to
// nanoseconds. A time of day more than half a day before the previous one is on the next day.
func (r *rmmReader) time(s string) (int64, error) {
	const day = 24 * 3600 * 1e9
	var h, m, sec int64
	var rest string
	ok := len(s) > 9 && s[2] == ':' && s[5] == ':' && (s[8] == '.' || s[8] == ':')
	if !ok {
		return seconds(s)
	}
	var errs [4]error
	h, errs[0] = strconv.ParseInt(s[0:2], 10, 8)
	m, errs[1] = strconv.ParseInt(s[3:5], 10, 8)
	sec, errs[2] = strconv.ParseInt(s[6:8], 10, 8)
	rest = s[9:]
	var micros uint64
	micros, errs[3] = strconv.ParseUint(rest, 10, 64)
	if errors.Join(errs[:]...) != nil || len(rest) != 6 || h < 0 || h > 23 || m < 0 || m > 59 || sec < 0 || sec > 60 {
		return 0, badTime(s)
	}
	t := ((h*60+m)*60+sec)*1e9 + int64(micros)*1000
	if r.last-t > day/2 {
		r.day += day
	}
	r.last = t
	return r.day + t, nil
}

// seconds parses a fractional number of seconds.
func seconds(s string) (int64, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || f < 0 || f > 1e9*9 {
		return 0, badTime(s)
	}
	whole, fraction, _ := strings.Cut(s, ".")
	if n, err := strconv.ParseInt(whole, 10, 64); err == nil && len(fraction) <= 9 {
		// nanoseconds since 1970 exceed a float's precision
		if f, err := strconv.ParseUint("0"+fraction+strings.Repeat("0", 9-len(fraction)), 10, 64); err == nil {
			return n*1e9 + int64(f), nil
		}
	}
	return int64(f * 1e9), nil
}

func badTime(s string) error {
	return fmt.Errorf("time %s: want hh:mm:ss.microseconds, or seconds", clip([]byte(s)))
}

func rmmSize(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("size %s: want a number from 0 to %d", clip([]byte(s)), uint64(math.MaxUint64))
	}
	return n, nil
}

// rmmPointer parses an address as printf writes it.
func rmmPointer(s string) (uint64, error) {
	if s == "(nil)" || s == "0" {
		return 0, nil
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 64)
	if err != nil {
		return 0, fmt.Errorf("pointer %s: want an address such as 0x7f0000000000, or (nil)", clip([]byte(s)))
	}
	return n, nil
}

// stream returns the number of a stream by its handle. 0 is the default stream under both of its
// names; others count from 1 in order of appearance.
func (r *rmmReader) stream(s string) (device.Stream, error) {
	h, err := rmmPointer(s)
	if err != nil {
		return 0, fmt.Errorf("stream %s: want a handle in hexadecimal", clip([]byte(s)))
	}
	if h <= 1 {
		return 0, nil
	}
	if n, ok := r.streams[h]; ok {
		return n, nil
	}
	if r.handles, err = budget.Append(r.memory, r.handles, h); err != nil {
		return 0, err
	}
	n := device.Stream(len(r.handles))
	return n, budget.Put(r.memory, r.streams, h, n)
}

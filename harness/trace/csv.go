package trace

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/budget"
)

// csvFormat is the value of the key "format" in the header of a CSV.
const csvFormat = csvFamily + "1"

// csvFamily is the prefix of csvFormat in every version.
const csvFamily = "memtrace-"

// CSVHeader is the line with the column names. Files with sites, threads or lifetimes have further
// columns after these.
const CSVHeader = "seq,op,id,bytes,stream,time_us,tag"

// csvOrigins are the optional columns after CSVHeader.
var csvOrigins = [...]string{"", ",site,thread", ",site,thread,life"}

// The indexes of csvOrigins.
const (
	originsNone  = iota
	originsSites // site and thread
	originsLives // site, thread and lifetime
)

var errHeader = errors.New("want the header line " + CSVHeader)

// csvMark parses the text after "# mark,": the number of the following event, and the mark's text.
// An error is kept in markErr, because it matters only if the file turns out to be a CSV.
func (p *parser) csvMark(rest []byte) error {
	digits, text, _ := bytes.Cut(rest, comma)
	seq, err := parseNumber("mark", digits)
	switch n := len(p.pending); {
	case err != nil:
	case n > 0 && p.pending[n-1].seq > seq:
		err = fmt.Errorf("mark at event %d follows one at event %d", seq, p.pending[n-1].seq)
	default:
		if err := p.b.memory.Take(int64(len(text))); err != nil {
			return err
		}
		p.pending, err = budget.Append(p.b.memory, p.pending, pendingMark{seq, string(text)})
		return err
	}
	if p.markErr == nil {
		p.markErr = p.src.errorf(err)
	}
	return nil
}

// csvRow is one line of a CSV.
type csvRow struct {
	seq, id, bytes, stream, time uint64
	op                           byte
	tag, site, thread, life      []byte
}

// csvReader reads the rows of a CSV.
type csvReader struct {
	*parser
	row     csvRow
	origins string     // columns after CSVHeader
	seq     uint64     // sequence number of the next row
	last    uint64     // time of the previous row
	births  []csvBirth // by slot: values that a free must repeat
}

// csvBirth holds the values of an allocation that its free repeats.
type csvBirth struct{ bytes, stream uint64 }

// readCSV reads the file from the header line on.
func (p *parser) readCSV(header []byte) error {
	origins, ok := strings.CutPrefix(string(header), CSVHeader)
	if !ok || !slices.Contains(csvOrigins[:], origins) {
		return p.src.errorf(errHeader)
	}
	if p.markErr != nil {
		return p.markErr
	}
	p.started = true
	p.b.trace.Header.Format = "csv"
	c := &csvReader{parser: p, origins: origins}
	for {
		line, err := p.src.Next()
		if err != nil {
			return err
		}
		if line == nil {
			break
		}
		if err := c.line(line); err != nil {
			return err
		}
	}
	if err := c.marks(); err != nil {
		return p.src.errorf(err)
	}
	if len(p.pending) > 0 {
		return p.src.errorf(fmt.Errorf("mark at event %d, but there are %d events", p.pending[0].seq, c.seq))
	}
	return nil
}

// line reads a line after the header line. Marks belong before it, but later ones are accepted if
// they precede their event.
func (c *csvReader) line(line []byte) error {
	if len(line) == 0 {
		return nil
	}
	if line[0] != '#' {
		if err := c.event(line); err != nil {
			return c.src.errorf(err)
		}
		c.seq++
		return nil
	}
	rest, ok := bytes.CutPrefix(bytes.TrimLeft(line[1:], " \t"), []byte("mark,"))
	if !ok {
		return nil
	}
	if err := c.csvMark(rest); err != nil {
		return c.src.errorf(err)
	}
	if c.markErr == nil && c.pending[len(c.pending)-1].seq < c.seq {
		return c.src.errorf(fmt.Errorf("mark at event %d stands behind that event", c.pending[len(c.pending)-1].seq))
	}
	return c.markErr
}

// marks adds the marks before the next row.
func (c *csvReader) marks() error {
	for len(c.pending) > 0 && c.pending[0].seq == c.seq {
		if err := c.b.Add(Event{Kind: Mark, Tag: c.b.Tag(c.pending[0].text), Time: NoTime}); err != nil {
			return err
		}
		c.pending = c.pending[1:]
	}
	return nil
}

// event adds the event of one row.
func (c *csvReader) event(line []byte) error {
	if err := c.marks(); err != nil {
		return err
	}
	if err := c.row.parse(line, c.origins); err != nil {
		return err
	}
	r := &c.row
	switch {
	case r.seq != c.seq:
		return fmt.Errorf("seq %d: want %d", r.seq, c.seq)
	case r.bytes == 0:
		return errors.New("bytes 0: want at least 1")
	case r.time < c.last:
		return fmt.Errorf("time_us %d: time goes back from %d", r.time, c.last)
	}
	c.last = r.time
	if r.op == 'a' {
		return c.alloc()
	}
	return c.free()
}

func (c *csvReader) alloc() error {
	r := &c.row
	e := Event{Kind: Alloc, ID: r.id, Size: device.Size(r.bytes), Stream: device.Stream(r.stream),
		Tag: c.b.intern(r.tag), Time: int64(r.time) * 1000}
	var err error
	if len(r.site) > 0 {
		if e.Site, err = parseSite(r.site); err != nil {
			return err
		}
	}
	if len(r.thread) > 0 {
		if e.Thread, err = parseThread(r.thread); err != nil {
			return err
		}
	}
	if len(r.life) > 0 {
		if e.Life, err = parseLife(r.life); err != nil {
			return err
		}
	}
	if err := c.add(e); err != nil {
		return err
	}
	slot := c.b.trace.Events[len(c.b.trace.Events)-1].Slot
	if int(slot) == len(c.births) {
		c.births, err = budget.Append(c.b.memory, c.births, csvBirth{})
	}
	if err == nil {
		c.births[slot] = csvBirth{r.bytes, r.stream}
	}
	return err
}

func (c *csvReader) free() error {
	r := &c.row
	if len(r.tag) > 0 {
		return fmt.Errorf("tag %s: want none on a free", clip(r.tag))
	}
	if len(r.site) > 0 || len(r.thread) > 0 {
		return fmt.Errorf("site %s, thread %s: want none on a free", clip(r.site), clip(r.thread))
	}
	if len(r.life) > 0 {
		return fmt.Errorf("life %s: want none on a free", clip(r.life))
	}
	if err := c.add(Event{Kind: Free, ID: r.id, Time: int64(r.time) * 1000}); err != nil {
		return err
	}
	slot := c.b.trace.Events[len(c.b.trace.Events)-1].Slot
	switch was := c.births[slot]; {
	case was.bytes != r.bytes:
		return fmt.Errorf("bytes %d: id %d was allocated with %d", r.bytes, r.id, was.bytes)
	case was.stream != r.stream:
		return fmt.Errorf("stream %d: id %d was allocated on %d", r.stream, r.id, was.stream)
	}
	return nil
}

// parse parses the columns of a line, CSVHeader and origins, in place.
func (r *csvRow) parse(line []byte, origins string) error {
	seq, line, ok1 := bytes.Cut(line, comma)
	op, line, ok2 := bytes.Cut(line, comma)
	id, line, ok3 := bytes.Cut(line, comma)
	size, line, ok4 := bytes.Cut(line, comma)
	stream, line, ok5 := bytes.Cut(line, comma)
	time, line, ok6 := bytes.Cut(line, comma)
	if more := strings.Count(origins, ","); !(ok1 && ok2 && ok3 && ok4 && ok5 && ok6) || bytes.Count(line, comma) != more {
		return fmt.Errorf("want %d columns: %s%s", 1+strings.Count(CSVHeader, ",")+more, CSVHeader, origins)
	}
	r.tag, line, _ = bytes.Cut(line, comma)
	r.site, line, _ = bytes.Cut(line, comma)
	r.thread, r.life, _ = bytes.Cut(line, comma)
	if len(op) != 1 || op[0] != 'a' && op[0] != 'f' {
		return fmt.Errorf("op %s: want a or f", clip(op))
	}
	r.op = op[0]
	for _, c := range [...]struct {
		name string
		cell []byte
		to   *uint64
	}{
		{"seq", seq, &r.seq}, {"id", id, &r.id}, {"bytes", size, &r.bytes}, {"stream", stream, &r.stream},
		{"time_us", time, &r.time},
	} {
		var ok bool
		if *c.to, ok = parseUint(c.cell); !ok {
			return notNumber(c.name, c.cell)
		}
	}
	if r.time > math.MaxInt64/1000 {
		return fmt.Errorf("time_us %d: want at most %d", r.time, uint64(math.MaxInt64/1000))
	}
	return nil
}

var comma = []byte(",")

package script

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/cockroachdb/datadriven"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

// Run runs each file testdata/*.txt as a subtest, with strategies that spec builds.
func Run(t *testing.T, spec setting.Spec) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("testdata/*.txt: want at least one file (%v)", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			s := &session{spec: spec}
			datadriven.RunTest(t, file, s.group)
		})
	}
}

// session is the state of one file.
type session struct {
	spec    setting.Spec
	s       alloc.Strategy
	gpu     *sim.Device
	faults  *device.Faults
	blocks  map[string]device.Addr // by name, freed ones included
	tags    []string               // name of tag i+1
	regions []device.Region        // region number i+1; of several at one address, the last is reserved
	out     strings.Builder
}

// group makes the calls of a group and returns their results and the heap.
func (s *session) group(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	s.out.Reset()
	for line := range strings.Lines(d.FullCmd() + "\n" + d.Input) {
		verb, words, err := datadriven.ParseLine(line)
		if err == nil {
			err = s.call(verb, words)
		}
		if err != nil {
			t.Fatalf("%s: %q: %v", d.Pos, strings.TrimSpace(line), err)
		}
	}
	if err := s.s.Check(); err != nil {
		t.Fatalf("%s: after the calls\n%s%v", d.Pos, s.out.String(), err)
	}
	s.heap()
	return s.out.String()
}

// arguments are the words of a call: values by key, and the words without a value in order.
type arguments struct {
	bare   []string
	values map[string]string
}

// call makes one call. An error means that the text of the call is invalid; errors of the strategy
// are results.
func (s *session) call(verb string, words []datadriven.CmdArg) error {
	args := arguments{values: map[string]string{}}
	for _, w := range words {
		if len(w.Vals) == 0 {
			args.bare = append(args.bare, w.Key)
		} else {
			args.values[w.Key] = strings.Join(w.Vals, ",")
		}
	}
	if verb == "new" {
		return s.build(args.values)
	}
	if s.s == nil {
		return errors.New("want new as the first call")
	}
	number, err := numberOf(args.values, "stream", "calls", "count")
	if err != nil {
		return err
	}
	stream := device.Stream(number)
	switch verb {
	case "alloc":
		return s.alloc(args, stream)
	case "free":
		return s.each(args.bare, func(at device.Addr) error { return s.s.Free(at) })
	case "record":
		return s.each(args.bare, func(at device.Addr) error { return power.RecordStream(s.s, at, stream) })
	case "work":
		return s.gpu.Work(stream, 1)
	case "drain":
		return s.gpu.Drain(stream)
	case "refuse":
		s.faults.FailNext(number)
	case "frontier":
		return power.SetFrontier(s.s, number)
	case "trim":
		return s.released(power.Trim(s.s))
	case "poll":
		return s.released(power.Poll(s.s))
	case "close":
		s.result("close", s.s.Close())
	case "walk":
	default:
		return fmt.Errorf("unknown call %q", verb)
	}
	return nil
}

// numberOf returns the value of the first of the keys that is given, 0 if none is.
func numberOf(values map[string]string, keys ...string) (uint64, error) {
	for _, key := range keys {
		if text, ok := values[key]; ok {
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%s=%s: want a number", key, text)
			}
			return n, nil
		}
	}
	return 0, nil
}

// build makes the device and the strategy.
func (s *session) build(values map[string]string) error {
	name, config := s.spec.Name, sim.Config{}
	fields := map[string]json.RawMessage{}
	for key, text := range values {
		var err error
		switch {
		case key == "preset":
			name += ":" + text
		case key == "capacity":
			config.Capacity, err = device.ParseSize(text)
		case json.Valid([]byte(text)):
			fields[key] = json.RawMessage(text)
		default:
			fields[key], err = json.Marshal(text)
		}
		if err != nil {
			return err
		}
	}
	override, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	setup, err := setting.Catalogue{s.spec}.Lookup(name, override)
	if err != nil {
		return err
	}
	*s = session{spec: s.spec, blocks: map[string]device.Addr{}}
	if s.gpu, err = sim.New(config); err != nil {
		return err
	}
	if s.faults, err = device.NewFaults(s.gpu, device.FaultPlan{}); err != nil {
		return err
	}
	observed := device.Hooked(s.faults, device.Hook{After: s.observe})
	s.s, err = setup.New(&observed)
	return err
}

// observe numbers new regions, and writes a line for a call that gives or takes memory.
func (s *session) observe(v *device.Invocation) {
	switch v.Call {
	case device.CallReserve, device.CallReserveRange, device.CallAllocAsync:
		if v.Err != nil {
			s.printf("device: %s of %s refused", v.Call, bytes(v.Size))
			return
		}
		s.regions = append(s.regions, v.Region)
		s.printf("device: %s R%d of %s", v.Call, len(s.regions), bytes(v.Region.Size))
	case device.CallRelease, device.CallReleaseRange, device.CallFreeAsync, device.CallMap, device.CallUnmap:
		if v.Err != nil {
			s.printf("device: %s %s refused", v.Call, s.place(v.Addr))
			return
		}
		s.printf("device: %s %s", v.Call, s.place(v.Addr))
	}
}

func (s *session) printf(format string, values ...any) { fmt.Fprintf(&s.out, format+"\n", values...) }

// result writes the outcome of a call.
func (s *session) result(call string, err error) {
	if err != nil {
		s.printf("%s: %v", call, err)
	} else {
		s.printf("%s: ok", call)
	}
}

// released writes the outcome of a call that releases memory.
func (s *session) released(n device.Size, err error) error {
	s.result(bytes(n)+" given back", err)
	return nil
}

// alloc makes a request and writes the block or the error.
func (s *session) alloc(args arguments, stream device.Stream) (err error) {
	if len(args.bare) != 2 {
		return errors.New("want a name and a size")
	}
	name := args.bare[0]
	r := alloc.Request{Stream: stream, Tag: uint64(len(s.tags) + 1)}
	if r.Size, err = device.ParseSize(args.bare[1]); err != nil {
		return err
	}
	if align, ok := args.values["align"]; ok {
		if r.Align, err = device.ParseSize(align); err != nil {
			return err
		}
	}
	if r.Before, err = numberOf(args.values, "before"); err != nil {
		return err
	}
	switch args.values["hint"] {
	case "low":
		r.Hint = alloc.HintLow
	case "high":
		r.Hint = alloc.HintHigh
	}
	s.tags = append(s.tags, name)
	b, err := s.s.Alloc(r)
	if err == nil {
		s.blocks[name] = b.Addr
		s.printf("%s: %s at %s", name, bytes(b.Size), s.place(b.Addr))
		return nil
	}
	if refusal, ok := power.LastRefusal(s.s); ok && !errors.Is(err, alloc.ErrClosed) {
		s.printf("%s: %v, %v (largest free chunk %s of %s)",
			name, err, refusal.Reason, bytes(refusal.LargestHole), bytes(refusal.Free))
		return nil
	}
	s.result(name, err)
	return nil
}

func (s *session) each(names []string, call func(device.Addr) error) error {
	for _, name := range names {
		at, ok := s.blocks[name]
		if !ok {
			return fmt.Errorf("no block %q was granted", name)
		}
		if err := call(at); err != nil {
			s.result(name, err)
		}
	}
	return nil
}

// place returns an address as an offset in the newest region that contains it, R1 for the start of
// the first.
func (s *session) place(at device.Addr) string {
	for i, r := range slices.Backward(s.regions) {
		if r.Contains(at) {
			if at == r.Addr {
				return fmt.Sprintf("R%d", i+1)
			}
			return fmt.Sprintf("R%d+%s", i+1, bytes(at.Sub(r.Addr)))
		}
	}
	return at.String()
}

// heap writes the counters and every chunk.
func (s *session) heap() {
	stats := s.s.Stats()
	s.printf("reserved %s, granted %s, requested %s",
		bytes(stats.Reserved), bytes(stats.Allocated), bytes(stats.Requested))
	w := tabwriter.NewWriter(&s.out, 0, 0, 2, ' ', 0)
	var region device.Addr
	for c := range s.s.Walk {
		if c.Region != region {
			region = c.Region
			fmt.Fprintln(w, s.place(region))
		}
		fmt.Fprintf(w, "  +%s\t%s\t%v", bytes(c.Addr.Sub(region)), bytes(c.Size), c.State)
		if detail := s.detail(c); detail != "" {
			fmt.Fprintf(w, "\t%s", detail)
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush() // a buffer takes everything
}

// detail returns the fields of a chunk that are not zero.
func (s *session) detail(c alloc.Chunk) string {
	var fields []string
	if c.Class != alloc.NoClass {
		fields = append(fields, fmt.Sprintf("class %d", c.Class))
	}
	if c.Tag != 0 {
		fields = append(fields, fmt.Sprintf("%s %s", s.tags[c.Tag-1], bytes(c.Requested)))
	}
	for _, f := range []struct {
		name  string
		value uint64
	}{{"owner", uint64(c.Owner)}, {"pool", uint64(c.Pool)}, {"stream", uint64(c.Stream)}, {"freed at", c.FreedAt}} {
		if f.value != 0 {
			fields = append(fields, fmt.Sprintf("%s %d", f.name, f.value))
		}
	}
	return strings.Join(fields, ", ")
}

// bytes returns a size exactly: as a number of bytes unless it is whole in a larger unit.
func bytes(n device.Size) string {
	if n == 0 {
		return "0"
	}
	if text := n.String(); !strings.Contains(text, ".") {
		return text
	}
	if n%device.KiB == 0 {
		return fmt.Sprintf("%dKiB", n/device.KiB)
	}
	return fmt.Sprintf("%dB", n)
}

package formats_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
)

// line is one line of a log: a block comes to an address or goes from it.
type line struct {
	free       bool
	addr, size uint64
	live       uint64 // bytes behind the line
}

// logOf draws a program whose blocks use few addresses again and again.
func logOf(rng *rand.Rand, n int) []line {
	var list []line
	sizes := map[uint64]uint64{}
	var total uint64
	for range n {
		addr := uint64(1+rng.IntN(12)) << 20
		size, live := sizes[addr]
		if live {
			delete(sizes, addr)
			total -= size
		} else {
			size = uint64(1 + rng.IntN(1<<16))
			sizes[addr] = size
			total += size
		}
		list = append(list, line{live, addr, size, total})
	}
	return list
}

// asRMM writes lines as RMM does.
func asRMM(list []line) string {
	text := rmmHead
	for i, l := range list {
		action := "allocate"
		if l.free {
			action = "free"
		}
		text += fmt.Sprintf("%d,%02d:00:%02d.%06d,%s,%#x,%d,0x0\n", i%3, (22+i/60)%24, i%60, i, action, l.addr, l.size)
	}
	return text
}

// asKineto writes lines as PyTorch's profiler does, out of order.
func asKineto(t *testing.T, rng *rand.Rand, list []line) string {
	t.Helper()
	events := make([]map[string]any, len(list))
	for i, l := range list {
		size := int64(l.size)
		if l.free {
			size = -size
		}
		events[i] = map[string]any{"ph": "i", "name": "[memory]", "ts": 1e6 + float64(i)/8, "args": map[string]any{
			"Device Type": 1, "Device Id": 2, "Addr": l.addr, "Bytes": size, "Total Allocated": l.live, "Ev Idx": 10 * i,
		}}
	}
	rng.Shuffle(len(events), func(i, k int) { events[i], events[k] = events[k], events[i] })
	text, err := json.Marshal(map[string]any{"deviceProperties": []any{}, "traceEvents": events})
	require.NoError(t, err)
	return string(text)
}

// liveBytes returns what is live behind each allocation and free, those at the start left out.
func liveBytes(tr *trace.Trace) []uint64 {
	var list []uint64
	sizes := map[uint64]uint64{}
	var live uint64
	for _, e := range tr.Events {
		switch e.Kind {
		case trace.LiveAtStart, trace.Alloc:
			sizes[e.ID] = uint64(e.Size)
			live += uint64(e.Size)
		case trace.Free:
			live -= sizes[e.ID]
		}
		if e.Kind != trace.LiveAtStart {
			list = append(list, live)
		}
	}
	return list
}

// TestLogsAreReadFromAnyMoment reads logs from their beginning and from their middle: every line is
// an event, and what is live behind each of them is what was live in the program, but for what a
// log without running totals never mentions.
func TestLogsAreReadFromAnyMoment(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 4))
		list := logOf(rng, 1+rng.IntN(150))
		from := rng.IntN(len(list))
		for name, text := range map[string]string{"rmm": asRMM(list[from:]), "kineto": asKineto(t, rng, list[from:])} {
			tr, err := formats.Read(strings.NewReader(text), "t", formats.Options{})
			require.NoError(t, err)
			require.Equal(t, name, tr.Header.Format)
			var want []uint64
			var silent uint64 // what is live all the time and never mentioned
			got := liveBytes(tr)
			require.Len(t, got, len(list)-from, "seed %d", seed)
			if name == "rmm" {
				silent = list[from].live - got[0]
			}
			for _, l := range list[from:] {
				want = append(want, l.live-silent)
			}
			require.Equal(t, want, got, "seed %d, %s from line %d", seed, name, from)
			for _, key := range []string{"frees_lost", "allocations_lost", "lines_lost", "free_sizes_that_disagree",
				"times_that_went_back"} {
				_, ok := tr.Header.Get(key)
				require.False(t, ok, key)
			}
		}
	}
}

// TestLostLinesAreCounted drops one line of a log in the middle.
func TestLostLinesAreCounted(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 5))
	list := logOf(rng, 100)
	for i := 1; i < len(list)-1; i++ {
		cut := append(append([]line(nil), list[:i]...), list[i+1:]...)
		tr, err := formats.Read(strings.NewReader(asKineto(t, rng, cut)), "t", formats.Options{})
		require.NoError(t, err)
		n, _ := tr.Header.Get("lines_lost")
		require.Equal(t, "1", n, "line %d", i)
	}
}

func TestKinetoVariants(t *testing.T) {
	const event = `{"ph":"i","name":"[memory]","ts":%s,"args":{"Device Type":%d,"Device Id":%d,"Addr":%d,"Bytes":%d}}`
	one := func(ts string, kind, id, addr, size int) string { return fmt.Sprintf(event, ts, kind, id, addr, size) }
	tr := read(t, "["+one("5.5", 1, 0, 64, 100)+","+one(`"1e0"`, 1, 0, 65, 200)+"]")
	require.Contains(t, lines(t, tr), "a 0 200 t=0\na 1 100 t=4500\n", "by time, without indices and totals")
	tr = read(t, `{"traceEvents":[`+one("1", 20, -1, 64, 100)+"]}")
	part, _ := tr.Header.Get("part")
	require.Equal(t, "device-type-20:0", part)
	marked := read(t, "\ufeff["+one("5.5", 1, 0, 64, 100)+"]")
	require.Len(t, marked.Events, 1, "a byte order mark")
	require.Len(t, marked.Header.Hash, 64)
	require.NotEqual(t, read(t, "["+one("5.5", 1, 0, 64, 100)+"]").Header.Hash, marked.Header.Hash,
		"the mark is hashed too")
	_, err := formats.Read(strings.NewReader("["+one("1", 1, 0, 1, 1)+","+one("1", 1, 1, 1, 1)+"]"), "t",
		formats.Options{})
	require.EqualError(t, err, `t: holds several parts, name one of them: "cuda:0" (1 events), "cuda:1" (1 events)`)
}

func TestRMMTimes(t *testing.T) {
	for text, want := range map[string]string{
		"1634567890.123456789 1634567890.123456790": "t=1",
		"0 1e-6":                          "t=1000",
		"1.5 2.25":                        "t=750000000",
		"00:00:00:000001 00:00:60.000001": "t=60000000000",
		"13:00:00.000000 12:59:59.000000": "t=0",
		"23:59:59.999999 00:00:00.000000": "t=1000",
	} {
		first, second, _ := strings.Cut(text, " ")
		tr := read(t, rmmHead+"1,"+first+",allocate,0x1,1,0\n1,"+second+",allocate,0x2,1,0\n")
		require.Contains(t, lines(t, tr), "a 0 1 thread=1 t=0\na 1 1 thread=1 "+want+"\n", text)
	}
}

// TestPartOfAFormatWithoutPartsIsAnError asks files that hold one trace for a part of them: who
// names a part must not be given something else.
func TestPartOfAFormatWithoutPartsIsAnError(t *testing.T) {
	for text, want := range map[string]string{
		"a 0 5\n":                          `t: has no part "cuda:0": files of the form text hold one trace`,
		"id,lower,upper,size\n0,0,5,10\n":  `t: has no part "cuda:0": files of the form minimalloc hold one trace`,
		"[[5,2,10,3]]":                     `t: has no part "cuda:0": files of the form timeline hold one trace`,
		rmmHead + "1,1,allocate,0x1,1,0\n": `t: has no part "cuda:0": want "device" (1 events)`,
	} {
		_, err := formats.Read(strings.NewReader(text), "t", formats.Options{Part: "cuda:0"})
		require.EqualError(t, err, want)
	}
	_, err := formats.Read(strings.NewReader("a 0 5\n"), "t", formats.Options{Part: "x", Dialect: "bfc"})
	require.EqualError(t, err, `t: has no part "x": files of the form bfc hold one trace`)
}

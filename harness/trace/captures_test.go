package trace_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// ascending has three captures that need 110, 300 and 200 bytes. The second one has a request of
// another stream, and the third begins the pool of the second again.
const ascending = `# name=t
live 1 50
pool begin 1 stream=3
a 2 100 stream=3
a 3 10 stream=3 tag=out t=5
f 2
pool end 1
a 4 7 t=8
f 3 t=9
mark "second and more"
pool begin 2 stream=3
mark inside
a 5 300 stream=3 t=11
f 5
a 6 800
f 1
pool end 2
f 4 t=12
pool begin 2 stream=4
pool release 2
a 7 200 stream=4
pool end 2
f 7
f 6
pool release 1
`

func TestLargestCaptureFirst(t *testing.T) {
	moved, err := repooled(t, ascending, trace.PoolsLargestFirst)
	require.NoError(t, err)
	require.Equal(t, `# name=t
# repooled=largest-first
live 1 50
pool begin 1 stream=3
mark inside
a 5 300 stream=3
f 5
a 6 800
f 1
pool end 1
a 4 7 t=8
mark "second and more"
pool begin 1 stream=4
a 7 200 stream=4
pool end 1
f 4 t=12
pool begin 1 stream=3
pool release 1
a 2 100 stream=3
a 3 10 stream=3 tag=out
f 2
pool end 1
f 3
f 7
f 6
pool release 1
`, moved)
}

// TestOpenLastCapture has a recording that ends within a capture, as after a failure, and then with
// frees of the end of the program.
func TestOpenLastCapture(t *testing.T) {
	const text = "# name=t\na 1 5\npool begin 1 stream=3\na 2 100 stream=3\npool end 1\n" +
		"pool begin 1 stream=3\na 3 150 stream=3\nrefused 200 stream=3\nf 3\nf 1\nf 2\n"
	moved, err := repooled(t, text, trace.PoolsLargestFirst)
	require.NoError(t, err)
	require.Equal(t, "# name=t\n# repooled=largest-first\na 1 5\npool begin 1 stream=3\na 3 150 stream=3\n"+
		"refused 200 stream=3\nf 3\npool end 1\npool begin 1 stream=3\na 2 100 stream=3\npool end 1\nf 1\nf 2\n", moved)
}

func TestCapturesThatStay(t *testing.T) {
	const captures = "a 1 5\npool begin 1 stream=3\na 2 10 stream=3\n%spool end 1\n%s" +
		"pool begin 1 stream=3\n%sa 3 20 stream=3\npool end 1\n"
	text := func(inFirst, between, inSecond string) string {
		return "# name=t\n" + fmt.Sprintf(captures, inFirst, between, inSecond)
	}
	const fixed = "t: the captures cannot be moved: "
	for name, c := range map[string]struct{ text, want string }{
		"one": {"# name=t\npool begin 1 stream=3\na 1 5 stream=3\npool end 1\n", "t: the trace has fewer than two captures"},
		"a pool of all streams is no capture": {
			"# name=t\npool begin 1\npool end 1\npool begin 2 stream=3\npool end 2\n",
			"t: the trace has fewer than two captures",
		},
		"largest first":    {text("a 9 90 stream=3\n", "", ""), "t: the captures are in this order already"},
		"equal":            {text("a 9 10 stream=3\n", "", ""), "t: the captures are in this order already"},
		"settings":         {text("", "", "conf \"\"\n"), fixed + "event 5 (conf) is inside one"},
		"settings between": {text("", "conf \"\"\n", ""), fixed + "event 4 (conf) is between two"},
		"a later release":  {text("pool release 1\n", "", ""), fixed + "event 3 (pool-release) is inside one"},
		"freed by the next": {text("", "", "f 2\n"),
			fixed + "event 5 (free of 2) would come before event 2 (alloc)"},
		"requested between": {text("", "a 4 1\n", "f 4\n"),
			fixed + "event 6 (free of 4) would come before event 4 (alloc)"},
		"within a MemPool": {"# name=t\npool begin 1\n" + fmt.Sprintf(captures, "", "", "") + "pool end 1\n",
			fixed + "another pool is open at event 2"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := repooled(t, c.text, trace.PoolsLargestFirst)
			require.EqualError(t, err, c.want)
			require.Equal(t, strings.HasPrefix(c.want, fixed), errors.Is(err, trace.ErrFixedCaptures))
		})
	}
}

func TestPrimedPool(t *testing.T) {
	primed, err := repooled(t, ascending, trace.PoolsPrimed)
	require.NoError(t, err)
	shared, err := repooled(t, ascending, trace.PoolsShared)
	require.NoError(t, err)
	require.Equal(t, strings.NewReplacer("repooled=share", "repooled=prime", "pool begin 1 stream=3\na 2 ",
		"pool begin 1\na 8 300 stream=3\nf 8\npool end 1\npool begin 1 stream=3\npool release 1\na 2 ").
		Replace(shared), primed)

	// Of a pool of all streams, the stream that needs the most counts.
	primed, err = repooled(t, "# name=t\npool begin 4\na 7 10 stream=1\na 8 15 stream=2\na 9 10 stream=1\npool end 4\n",
		trace.PoolsPrimed)
	require.NoError(t, err)
	require.Contains(t, primed, "pool begin 4\na 4 20 stream=1\nf 4\npool end 4\npool begin 4\npool release 4\na 1 10")

	_, err = repooled(t, "# name=t\npool begin 4 stream=2\na 1 5\npool end 4\n", trace.PoolsPrimed)
	require.EqualError(t, err, "t: no request goes to a private pool")
}

// TestOrderOfCapturesKeepsRequests moves captures of random traces. It requires a legal trace with
// the same requests in the same pools, whose events of a block keep their order, and the largest
// captures first, the same each time.
func TestOrderOfCapturesKeepsRequests(t *testing.T) {
	moved := 0
	for seed := range uint64(300) {
		source := capturedAtRandom(seed)
		got, err := repooled(t, source, trace.PoolsLargestFirst)
		again, _ := repooled(t, source, trace.PoolsLargestFirst)
		require.Equal(t, got, again)
		if err != nil {
			continue
		}
		moved++
		shared, err := repooled(t, source, trace.PoolsShared)
		require.NoError(t, err)
		before, after := requestsOf(read(t, shared)), requestsOf(read(t, got)) // reading checks that it is legal
		require.IsNonIncreasing(t, after.needs, "seed %d", seed)
		slices.Sort(before.requests)
		slices.Sort(after.requests)
		require.Equal(t, before.requests, after.requests, "seed %d", seed)
		require.Equal(t, before.lives, after.lives, "seed %d", seed)
	}
	require.Greater(t, moved, 50)
}

// capturedAtRandom returns a trace with captures of different needs. Sizes are names of blocks.
func capturedAtRandom(seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	b.WriteString("# name=t\n")
	size := 0
	var live []int
	step := func(stream int) {
		if len(live) > 0 && r.IntN(2) == 0 {
			k := r.IntN(len(live))
			if r.IntN(3) == 0 {
				fmt.Fprintf(&b, "use %d 9\n", live[k])
			}
			fmt.Fprintf(&b, "f %d\n", live[k])
			live = slices.Delete(live, k, k+1)
			return
		}
		size++
		live = append(live, size)
		fmt.Fprintf(&b, "a %d %d stream=%d\n", size, 1<<20+size, stream)
	}
	for range 2 + r.IntN(4) {
		for range r.IntN(3) {
			step(0)
		}
		pool := 1 + r.IntN(2)
		stream := 1 + r.IntN(2)
		fmt.Fprintf(&b, "pool begin %d stream=%d\n", pool, stream)
		if r.IntN(3) > 0 {
			live = nil // so that more captures can be moved
		}
		for range r.IntN(7) {
			step(stream * r.IntN(2))
		}
		fmt.Fprintf(&b, "pool end %d\n", pool)
	}
	return b.String()
}

// requested is a trace by its requests.
type requested struct {
	requests []string                 // size, stream and pool
	lives    map[device.Size][]string // kinds of the events of a block, by its size
	needs    []device.Size            // of the captures
}

func requestsOf(t *trace.Trace) requested {
	q := requested{lives: map[device.Size][]string{}}
	sizes := map[uint32]device.Size{}
	inside := map[uint32]bool{}
	var open *trace.Event
	var now device.Size
	for i := range t.Events {
		e := &t.Events[i]
		switch e.Kind {
		case trace.PoolBegin:
			open, now, inside = e, 0, map[uint32]bool{}
			q.needs = append(q.needs, 0)
			continue
		case trace.PoolEnd:
			open = nil
			continue
		case trace.Alloc:
			sizes[e.Slot] = e.Size
			pool := uint64(0)
			if open != nil && open.Stream == e.Stream {
				pool, inside[e.Slot] = open.Arg, true
				now += e.Size
				q.needs[len(q.needs)-1] = max(q.needs[len(q.needs)-1], now)
			}
			q.requests = append(q.requests, fmt.Sprint(e.Size, e.Stream, pool))
		case trace.Free:
			if inside[e.Slot] {
				now -= sizes[e.Slot]
			}
		}
		q.lives[sizes[e.Slot]] = append(q.lives[sizes[e.Slot]], e.Kind.String())
	}
	return q
}

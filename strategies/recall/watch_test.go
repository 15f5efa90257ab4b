package recall

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// steps notes repetitions of 300 allocations; before each one, an earlier one is freed. Change may
// change one or drop it: it returns size 0 for a missing one.
func steps(w *watch, repetitions int, change func(repetition, k int, n device.Size) device.Size) {
	for r := range repetitions {
		w.low = w.next() // the low tide
		born := map[int]int32{}
		for k := range 300 {
			old := k - 2 - int(mix(1, uint32(k))%12)
			if i, ok := born[old]; ok {
				w.free(i)
				delete(born, old)
			}
			n := device.Size(mix(0, uint32(k))%97+1) * 4 * fewBytes
			if n = change(r, k, n); n > 0 {
				born[k] = w.next()
				w.step(n)
			}
		}
	}
}

func unchangedStep(_, _ int, n device.Size) device.Size { return n }

// TestDeviationsAreCounted changes one allocation of the last of some equal repetitions.
func TestDeviationsAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		change func(n device.Size) device.Size
		least  int
	}{
		"none":   {func(n device.Size) device.Size { return n }, 0},
		"resize": {func(n device.Size) device.Size { return n + 64*fewBytes }, 1},
		"drop":   {func(device.Size) device.Size { return 0 }, 1},
	} {
		w := newWatch(defaultMemory)
		steps(&w, 4, unchangedStep)
		require.NotEqual(t, none, w.at, name)
		from := w.next()
		steps(&w, 1, func(_, k int, n device.Size) device.Size {
			if k == 150 {
				return c.change(n)
			}
			return n
		})
		n := w.deviatedSince(from)
		require.GreaterOrEqual(t, n, c.least, name)
		require.LessOrEqual(t, n, fewDeviations*c.least, name)
		require.Equal(t, w.from, w.next()-1, "%s: the place is lost", name)
	}
}

// TestPlaceIsKept inserts and drops ten allocations in a row: the place is right again within 16.
func TestPlaceIsKept(t *testing.T) {
	const from, run, within = 150, 10, 16
	for name, c := range map[string]struct{ insert, drop int }{"insert": {run, 0}, "drop": {0, run}} {
		w := newWatch(defaultMemory)
		steps(&w, 4, unchangedStep)
		start := w.next()
		steps(&w, 1, func(_, k int, n device.Size) device.Size {
			if k == from {
				for range c.insert {
					w.step(8192 * fewBytes)
				}
			}
			if k > from+c.drop+within { // the allocation before this one
				require.Equal(t, start-300+int32(k)-1, w.of(w.next()-1).twin, "%s: allocation %d", name, k-1)
			}
			if k >= from && k < from+c.drop {
				return 0
			}
			return n
		})
	}
}

// TestForgetKeepsTheLostPlace forgets while there is no place: the one that was lost stays known.
func TestForgetKeepsTheLostPlace(t *testing.T) {
	w := newWatch(defaultMemory)
	steps(&w, 4, unchangedStep)
	at, by := w.at, w.from
	w.lose()
	w.forget(w.next() / 2)
	require.Equal(t, [2]int32{at, by}, [2]int32{w.lostAt, w.lostBy})
}

// longestMatch is find without shortcuts: it compares each candidate to the end.
func longestMatch(w *watch, i int32) (best, length int32) {
	compare := func(y int32) (n int32, changes int) {
		for ; n < longest && y-n >= w.base && w.of(y-n).token == w.of(i-n).token; n++ {
			changes += count(n > 0 && w.of(i-n).token != w.of(i-n+1).token)
		}
		return n, changes
	}
	best, most := none, int32(0)
	if w.at != none && w.missed <= briefMiss {
		most = w.matched
		if w.from == i {
			n, _ := compare(w.at)
			most = max(n, most)
		}
	}
	y := w.of(i).same
	for n := 0; n < candidates && y >= w.base; n, y = n+1, w.of(y).same {
		m, changes := compare(y)
		if y == w.at || y >= w.low || i-y < w.least || m < contextLen || changes < contextInfo {
			continue
		}
		score := m + nearLoss*int32(count(w.at == none && w.moved(y, i)))
		if score > most && (w.at == none || m > 2*most+doubtEvery) {
			best, most, length = y, score, m
		}
	}
	return best, length
}

// TestTheLongestMatchIsFound looks for matches in steps with deviations, and in runs of one block
// after another, which are long and have few changes. The place is known, unknown or just lost.
func TestTheLongestMatchIsFound(t *testing.T) {
	w, r := newWatch(leastMemory*8), rand.New(rand.NewPCG(1, 1))
	found, refused := 0, 0
	check := func() {
		i := w.next() - 1
		if i < 0 || w.of(i).same == none {
			return
		}
		w.list()
		known, unknown, lost := w, w, w
		if y := w.of(i).same; y >= w.base {
			known.at, known.from, known.missed, known.matched = y, i-r.Int32N(2), r.Int32N(2*briefMiss), r.Int32N(64)
		}
		unknown.at, unknown.lostAt = none, none
		lost.at, lost.lostAt, lost.lostBy = none, w.of(i).same-w.least, i
		for _, x := range []*watch{&w, &known, &unknown, &lost} {
			best, n := x.find(i)
			wantBest, want := longestMatch(x, i)
			require.Equal(t, [2]int32{wantBest, want}, [2]int32{best, n}, "allocation %d", i)
			found += count(best != none)
			refused += count(best == none)
		}
	}
	forget := func() {
		if w.full() {
			w.forget(w.base + w.memory/2)
		}
	}
	for _, rare := range []int{10, 50, 500} {
		steps(&w, 8, func(repetition, _ int, n device.Size) device.Size {
			forget()
			check()
			return n * device.Size(1-count(repetition%4 == 3 && r.IntN(40) == 0))
		})
		for range 800 {
			forget()
			w.low = w.next()
			w.step(fewBytes << count(r.IntN(rare) == 0))
			check()
			w.free(w.next() - 1)
		}
	}
	require.Greater(t, found, 1000)
	require.Greater(t, refused, 1000)
}

// TestPredictionsAreCached predicts sizes of more histories than the cache has room for.
func TestPredictionsAreCached(t *testing.T) {
	e, r := newEras(), rand.New(rand.NewPCG(1, 1))
	var all []history
	for k := range device.Size(4 << predictionBits) {
		h := history{quantum * (k + 1), quantum * (1 + k%3), quantum * (k % 2)}
		e.sizes[h] = seen{size: 7 * k, votes: votes{yes: 1}}
		all = append(all, h)
	}
	var p predictions
	for range 20 * len(all) {
		h := all[r.IntN(1+r.IntN(len(all)))] // some more often
		n, how := p.predict(&e, h)
		require.Equal(t, e.sizes[h].size, n)
		require.Equal(t, exactly, how)
	}
}

func TestVotes(t *testing.T) {
	for _, c := range []struct {
		votes string // + agrees, - does not
		many  bool
	}{
		{"+", false}, {"+-", true}, {"++++-", false}, {"++++--", true}, {"+-+++", false}, {"-", true},
	} {
		var v votes
		for _, x := range c.votes {
			v.add(x == '+')
		}
		require.Equal(t, c.many, v.many(), c.votes)
	}
	var v votes
	for range 1000 {
		v.add(false)
	}
	for range 1000 {
		v.add(true)
	}
	require.False(t, v.many(), "old votes are forgiven")
}

// TestLeastGain counts deviations of the last period and plans that were given up.
func TestLeastGain(t *testing.T) {
	f := forecast{period: 200, peak: 1 << 30}
	for _, c := range []struct {
		deviations int
		doubt      uint64
		want       device.Size
	}{
		{0, 0, f.peak / gainShare},
		{fewDeviations, 0, f.peak / gainShare},
		{fewDeviations + 10, 0, f.peak / 200 * riskFactor * 10},
		{fewDeviations + 10, 1, 2 * (f.peak / 200 * riskFactor * 10)},
		{0, 2, 3 * (f.peak / gainShare)},
	} {
		a := Allocator{watch: newWatch(leastMemory), doubt: c.doubt}
		a.watch.at = 100
		for k := range 10 { // before the period, which do not count
			a.watch.deviated = append(a.watch.deviated, int32(k))
		}
		for k := range c.deviations {
			a.watch.deviated = append(a.watch.deviated, 100+int32(k))
		}
		require.Equal(t, c.want, a.leastGain(&f), "%+v", c)
	}
}

// TestRestart forgets everything while blocks are live.
func TestRestart(t *testing.T) {
	a, err := NewRange(mirror{1 << 20}, Config{})
	require.NoError(t, err)
	var blocks []alloc.Block
	take := func() {
		b, err := a.Alloc(alloc.Request{Size: 1000})
		require.NoError(t, err)
		blocks = append(blocks, b)
		require.NoError(t, a.Check())
	}
	for range 10 {
		take()
	}
	a.restart()
	for range 10 {
		take()
	}
	for _, b := range blocks {
		require.NoError(t, a.Free(b.Addr))
		require.NoError(t, a.Check())
	}
}

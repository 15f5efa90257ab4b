package linear_test

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/linear"
	"github.com/vramyard/vramyard/props/propstest"
	"github.com/vramyard/vramyard/strategies"
)

// tiny are strategies of a number of equal blocks of 256 bytes, and nothing else.
var tiny = map[string]func(t *testing.T, blocks device.Size) alloc.Strategy{
	"bfc": func(t *testing.T, blocks device.Size) alloc.Strategy {
		return build(t, "bfc", `{}`, blocks*256)
	},
	"bfc:growth": func(t *testing.T, blocks device.Size) alloc.Strategy {
		return build(t, "bfc:growth", `{}`, blocks*256)
	},
	"buddy:xdl": func(t *testing.T, blocks device.Size) alloc.Strategy {
		return build(t, "buddy:xdl", `{"region_bytes":512,"block_bytes":256}`, blocks*256)
	},
	"slab:blaze": func(t *testing.T, blocks device.Size) alloc.Strategy {
		return build(t, "slab:blaze", `{"region_bytes":512,"min_class_bytes":256}`, blocks*256)
	},
}

// build returns the strategy of the catalogue over a device of capacity bytes.
func build(t *testing.T, name, config string, capacity device.Size) alloc.Strategy {
	t.Helper()
	setup, err := strategies.All().Lookup(name, []byte(config))
	require.NoError(t, err)
	dev, err := sim.New(sim.Config{Capacity: capacity, Align: 256})
	require.NoError(t, err)
	s, err := setup.ForCapacity(capacity).New(dev)
	require.NoError(t, err)
	return s
}

// locked puts a strategy behind the lock of package alloc.
func locked(t *testing.T, s alloc.Strategy) alloc.Strategy {
	t.Helper()
	l, err := wrap.Locked(s)
	require.NoError(t, err)
	return l
}

func TestLockedIsLinearizable(t *testing.T) {
	for name, s := range tiny {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireLinear(t, linear.RunLoad(locked(t, s(t, 4)), linear.Load{Think: runtime.Gosched}), 4)
		})
	}
}

func TestRetryingWithoutPatienceIsLinearizable(t *testing.T) {
	r, err := wrap.Retrying(locked(t, tiny["bfc"](t, 4)), 0)
	require.NoError(t, err)
	requireLinear(t, linear.RunLoad(r, linear.Load{}), 4)
}

// TestRetryingIsLinearizable has twice as many callers as blocks, each of which holds one at
// most. A request that waits is one call, and none may give up: whoever holds a block frees it.
func TestRetryingIsLinearizable(t *testing.T) {
	r, err := wrap.Retrying(locked(t, tiny["bfc"](t, 2)), time.Minute)
	require.NoError(t, err)
	h := linear.RunLoad(r, linear.Load{Modest: true, Think: runtime.Gosched})
	requireLinear(t, h, 2)
	for _, o := range h {
		require.NoError(t, o.Output.(linear.Answer).Err)
	}
	require.Positive(t, r.Stats().OOMs, "nobody had to wait")
	require.Zero(t, r.Stats().Live)
}

// TestWaitSpansTheCall checks that a history shows a waiting request as one long call, by a
// clock that runs only while everybody waits.
func TestWaitSpansTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := wrap.Retrying(locked(t, tiny["bfc"](t, 2)), time.Hour)
		require.NoError(t, err)
		h := linear.RunLoad(r, linear.Load{
			Modest: true, Callers: 6, Operations: 100, Think: func() { time.Sleep(time.Second) },
		})
		requireLinear(t, h, 2)
		longest := int64(0)
		for _, o := range h {
			require.NoError(t, o.Output.(linear.Answer).Err)
			longest = max(longest, o.Return-o.Call)
		}
		require.Greater(t, longest, int64(6), "no call spanned those of others")
		require.Positive(t, r.Delay(), "nobody waited")
	})
}

// requireLinear checks a history and that it was not idle.
func requireLinear(t *testing.T, h linear.History, blocks int) {
	t.Helper()
	start := time.Now()
	require.NoError(t, linear.Check(h, blocks))
	count := map[linear.Kind]int{}
	for _, o := range h {
		count[o.Input.(linear.Call).Kind]++
	}
	t.Logf("%d requests, %d frees and %d counts, checked in %v", count[linear.Alloc], count[linear.Free],
		count[linear.Live],
		time.Since(start))
	for k, n := range count {
		require.Greater(t, n, len(h)/100, "kind %d", k)
	}
}

// torn is a wrapper that takes the lock to look, gives it back, and takes it again to act.
type torn struct {
	alloc.Strategy // behind a lock of its own
	bug            string
	mu             sync.Mutex
	full           bool
}

// The planted bugs. In each of them every access is behind a lock, so that the race
// detector has nothing to say.
const (
	freesTwice   = "free looks whether the block is live, and then frees it, whatever is true by then"
	countsTwice  = "grants and frees are counted at different moments"
	remembers    = "a request is refused because memory was out, although a free has ended since"
	grantsTwice  = "a request looks for a free block, and then takes it, whatever is true by then"
	forgetsFrees = "a free answers before it is done"
)

func (s *torn) Free(a device.Addr) error {
	switch s.bug {
	case freesTwice:
		live := false
		for c := range s.Walk {
			live = live || c.Addr == a && c.State == alloc.Live
		}
		if !live {
			return alloc.ErrInvalidFree
		}
		runtime.Gosched()
		_ = s.Strategy.Free(a) // it was live a moment ago
		return nil
	case forgetsFrees:
		go func() { _ = s.Strategy.Free(a) }()
		return nil
	}
	err := s.Strategy.Free(a)
	if s.bug == remembers && err == nil {
		go func() {
			runtime.Gosched()
			s.remember(false)
		}()
	}
	return err
}

func (s *torn) Alloc(r alloc.Request) (alloc.Block, error) {
	switch s.bug {
	case remembers:
		s.mu.Lock()
		full := s.full
		s.mu.Unlock()
		if full {
			return alloc.Block{}, alloc.ErrOutOfMemory
		}
	case grantsTwice:
		if b, ok := s.look(r); ok {
			return b, nil
		}
	}
	b, err := s.Strategy.Alloc(r)
	if s.bug == remembers && err != nil {
		s.remember(true)
	}
	return b, err
}

// look returns a free block and takes it afterwards.
func (s *torn) look(r alloc.Request) (b alloc.Block, ok bool) {
	for c := range s.Walk {
		if c.State == alloc.Free {
			b, ok = alloc.Block{Addr: c.Addr, Size: r.Size}, true
			break
		}
	}
	if !ok {
		return b, false
	}
	runtime.Gosched()
	_, err := s.Strategy.Alloc(r) // this one, if nobody came between
	return b, err == nil
}

func (s *torn) remember(full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full = full
}

func (s *torn) Stats() alloc.Stats {
	stats := s.Strategy.Stats()
	if s.bug == countsTwice {
		runtime.Gosched()
		stats.Live = int(stats.Allocs - s.Strategy.Stats().Frees)
	}
	return stats
}

// TestCheckThenActIsFound plants bugs that no race detector sees. When callers come between
// is the scheduler's choice, so there are some rounds to find each.
func TestCheckThenActIsFound(t *testing.T) {
	for _, bug := range []string{freesTwice, countsTwice, remembers, grantsTwice, forgetsFrees} {
		t.Run(bug, func(t *testing.T) {
			for round := range uint64(50) {
				s := &torn{Strategy: locked(t, tiny["bfc"](t, 3)), bug: bug}
				h := linear.RunLoad(s, linear.Load{Seed: round, Operations: 500, Think: runtime.Gosched})
				err := linear.Check(h, 3)
				if err == nil {
					continue
				}
				var v *props.Violation
				require.ErrorAs(t, err, &v)
				require.Equal(t, props.ILinear, v.Number)
				t.Logf("found in round %d: %v", round+1, err)
				return
			}
			t.Fatal("not found")
		})
	}
}

// ConcurrencySafe implements [power.Concurrent]. A torn strategy promises too much.
func (s *torn) ConcurrencySafe() {}

// tornSubject returns a torn strategy over few blocks.
func tornSubject(t *testing.T, bug string, quiescent bool) props.Subject {
	on := sim.Config{Capacity: 4096, Align: 256}
	setup, err := strategies.All().Lookup("bfc", nil)
	require.NoError(t, err)
	setup = setup.ForCapacity(on.Capacity)
	s := props.SubjectOfSetup(setup, on)
	s.Promises.Quiescent = quiescent
	return s.Wrapped("torn", func(a alloc.Strategy) (alloc.Strategy, error) {
		l, err := wrap.Locked(a)
		return &torn{Strategy: l, bug: bug}, err
	})
}

// tears are the bugs of TestTornStatsAreFound, and whether each is right for a quiescent strategy.
var tears = map[string]bool{"": true, freesTwice: false, grantsTwice: false, countsTwice: true}

// TestRunFindsBrokenPromises plants bugs in a strategy that promises thread safety. The property
// suite has to find each, in a program of its own because it fails there.
func TestRunFindsBrokenPromises(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for bug, rightAtRest := range tears {
		for _, mode := range []string{"strict", "quiescent"} {
			t.Run(bug+"/"+mode, func(t *testing.T) {
				run := exec.Command(self, "-test.v", "-test.run=^TestTornStatsAreFound$/./torn/Serves")
				run.Env = append(os.Environ(), "VRAMYARD_TORN="+bug+"/"+mode)
				out, err := run.CombinedOutput()
				require.Contains(t, string(out), "ServesManyCallersAtOnce")
				if bug == "" || mode == "quiescent" && rightAtRest {
					require.NoError(t, err, "%s", out)
					return
				}
				require.Error(t, err, "%s", out)
				require.Contains(t, string(out), props.ILinear.String())
			})
		}
	}
}

// TestTornStatsAreFound is what TestRunFindsBrokenPromises runs.
func TestTornStatsAreFound(t *testing.T) {
	bug, mode, ok := strings.Cut(os.Getenv("VRAMYARD_TORN"), "/")
	if !ok {
		t.Skip("only TestRunFindsBrokenPromises runs it")
	}
	propstest.Run(t, tornSubject(t, bug, mode == "quiescent"))
}

// TestTangledHistoryIsUndecided has calls that all overlap and one that no order explains: the
// search for an order has to end on any machine.
func TestTangledHistoryIsUndecided(t *testing.T) {
	h := linear.History{{Input: linear.Call{Kind: linear.Live}, Call: 100, Output: linear.Answer{Live: 2}, Return: 101}}
	for i := range int64(40) {
		a := device.Addr(0x1000 * (1 + i/2))
		o := porcupine.Operation{Call: 1 + i, Return: 60 + i, Input: linear.Call{Kind: linear.Alloc},
			Output: linear.Answer{Addr: a}}
		if i%2 == 1 {
			o.Input, o.Output = linear.Call{Kind: linear.Free, Addr: a}, linear.Answer{}
		}
		h = append(h, o)
	}
	require.ErrorIs(t, linear.Check(h, 20), linear.ErrUndecided)
}

func TestRunLoadRaisesPanics(t *testing.T) {
	s := tornSubject(t, "", false).Wrapped("panics", func(alloc.Strategy) (alloc.Strategy, error) {
		return nothing{}, nil
	})
	require.Panics(t, func() { _, _ = linear.Verify(s, 1, 1, func() {}) })
}

// nothing is a strategy whose calls panic.
type nothing struct{ alloc.Strategy }

// TestCheckJudgesSmallHistories holds the model to account, answer by answer.
func TestCheckJudgesSmallHistories(t *testing.T) {
	const a, b = device.Addr(0x1000), device.Addr(0x2000)
	op := func(begin, end int64, c linear.Call, got linear.Answer) porcupine.Operation {
		return porcupine.Operation{Input: c, Call: begin, Output: got, Return: end}
	}
	get := func(begin, end int64, at device.Addr) porcupine.Operation {
		return op(begin, end, linear.Call{Kind: linear.Alloc}, linear.Answer{Addr: at})
	}
	none := func(begin, end int64) porcupine.Operation {
		return op(begin, end, linear.Call{Kind: linear.Alloc}, linear.Answer{Err: alloc.ErrOutOfMemory})
	}
	free := func(begin, end int64, at device.Addr, err error) porcupine.Operation {
		return op(begin, end, linear.Call{Kind: linear.Free, Addr: at}, linear.Answer{Err: err})
	}
	live := func(begin, end int64, n int) porcupine.Operation {
		return op(begin, end, linear.Call{Kind: linear.Live}, linear.Answer{Live: n})
	}
	for name, c := range map[string]struct {
		history linear.History
		right   bool
	}{
		"nothing":                         {nil, true},
		"one after another":               {linear.History{get(1, 2, a), free(3, 4, a, nil), get(5, 6, a)}, true},
		"granted twice":                   {linear.History{get(1, 2, a), get(3, 4, a)}, false},
		"granted twice, freed between":    {linear.History{get(1, 2, a), get(3, 6, a), free(4, 5, a, nil)}, true},
		"granted before the free began":   {linear.History{get(1, 2, a), get(3, 4, a), free(5, 6, a, nil)}, false},
		"out of memory while one is free": {linear.History{get(1, 2, a), none(3, 4)}, false},
		"out of memory while all live":    {linear.History{get(1, 2, a), get(3, 4, b), none(5, 6)}, true},
		"out of memory at some moment":    {linear.History{get(1, 2, a), get(3, 4, b), none(5, 9), free(6, 7, a, nil)}, true},
		"out of memory after the free": {linear.History{get(1, 2, a), get(3, 4, b), free(5, 6, a, nil), none(7, 8)},
			false},
		"waited for a free": {linear.History{get(1, 2, a), get(3, 4, b), get(5, 9, a), free(6, 7, a, nil)},
			true},
		"freed twice": {linear.History{get(1, 2, a), free(3, 6, a, nil), free(4, 5, a, nil)}, false},
		"freed once, refused once": {linear.History{get(1, 2, a), free(3, 6, a, alloc.ErrInvalidFree),
			free(4, 5, a, nil)}, true},
		"a live block refused":       {linear.History{get(1, 2, a), free(3, 4, a, alloc.ErrInvalidFree)}, false},
		"a stranger freed":           {linear.History{free(1, 2, b, nil)}, false},
		"a stranger refused":         {linear.History{free(1, 2, b, alloc.ErrInvalidFree)}, true},
		"a wrong error":              {linear.History{free(1, 2, b, alloc.ErrClosed)}, false},
		"a wrong count":              {linear.History{get(1, 2, a), live(3, 4, 2)}, false},
		"a count at some moment":     {linear.History{get(1, 4, a), live(2, 3, 0)}, true},
		"more blocks than there are": {linear.History{get(1, 2, a), get(3, 4, b), get(5, 6, 0x3000)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := linear.Check(c.history, 2)
			if c.right {
				assert.NoError(t, err)
				return
			}
			var v *props.Violation
			require.ErrorAs(t, err, &v)
			assert.Equal(t, props.ILinear, v.Number)
		})
	}
}

func TestModelDescribesItself(t *testing.T) {
	m := linear.Model([]device.Addr{0x1000, 0x2000})
	assert.Equal(t, "00 live", m.DescribeState(m.Init()))
	call, got := linear.Call{Kind: linear.Alloc}, linear.Answer{Addr: 0x2000}
	right, after := m.Step(m.Init(), call, got)
	assert.True(t, right)
	assert.Equal(t, "10 live", m.DescribeState(after))
	assert.Equal(t, "Alloc: 0x2000", m.DescribeOperation(call, got))
	assert.Equal(t, "Free 0x2000: done", m.DescribeOperation(linear.Call{Kind: linear.Free, Addr: 0x2000},
		linear.Answer{}))
	assert.Equal(t, "1 live", m.DescribeOperation(linear.Call{Kind: linear.Live}, linear.Answer{Live: 1}))
}

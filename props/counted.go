package props

import (
	"slices"
	"strings"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
)

// The parts of the name of a counter such as active_bytes.large_pool.peak.
var (
	countedPools   = [...]string{"all", "small_pool", "large_pool"}
	countedColumns = [...]string{"current", "peak", "allocated", "freed"}
)

type column int

const (
	current column = iota
	peak
	totalAllocated
	totalFreed
)

// summed is a counter that is a sum over a walk.
type summed struct {
	name string
	once bool // it rises at most once within a call, after every decrease
	of   func(c alloc.Chunk, split bool) int64
}

var sums = [...]summed{
	{"allocation", true, func(c alloc.Chunk, _ bool) int64 { return one(c.State == alloc.Live) }},
	{"allocated_bytes", true, func(c alloc.Chunk, _ bool) int64 { return one(c.State == alloc.Live) * int64(c.Size) }},
	{"active", true, func(c alloc.Chunk, _ bool) int64 { return one(inUse(c)) }},
	{"active_bytes", true, func(c alloc.Chunk, _ bool) int64 { return one(inUse(c)) * int64(c.Size) }},
	{"requested_bytes", true, func(c alloc.Chunk, _ bool) int64 { return int64(c.Requested) }},
	{"segment", false, func(c alloc.Chunk, _ bool) int64 {
		return one(c.Addr == c.Region && c.Owner != power.OwnerExpandable)
	}},
	{"reserved_bytes", false, func(c alloc.Chunk, _ bool) int64 { return one(c.State.Held()) * int64(c.Size) }},
	{"inactive_split", false, func(_ alloc.Chunk, split bool) int64 { return one(split) }},
	{"inactive_split_bytes", false, func(c alloc.Chunk, split bool) int64 { return one(split) * int64(c.Size) }},
}

func pendingChunk(c alloc.Chunk) bool { return c.State == alloc.Pending }

func inUse(c alloc.Chunk) bool { return c.State == alloc.Live || c.State == alloc.Pending }

func one(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// counterIndex maps the counters of a strategy to columns.
type counterIndex struct {
	names   []string
	columns [][len(countedColumns)]int                             // of every counter that has them
	sums    [len(sums)][len(countedPools)][len(countedColumns)]int // of the sums
	ooms    int
	retries int // -1 if it is missing
	taken   int // calls that took memory; -1 if unknown
}

// newCounterIndex returns the index, or a violation of invariant I58 if a name is there twice or,
// where any is PyTorch's, one of PyTorch's is missing. A strategy may have counters of its own
// alone: they are not compared with the walk, and the index has no columns.
func newCounterIndex(names []string) (*counterIndex, error) {
	x := &counterIndex{names: names}
	at := map[string]int{}
	for i, name := range names {
		if _, twice := at[name]; twice {
			return nil, violated(ICounted, "counter %s is there twice", name)
		}
		at[name] = i
	}
	if !slices.ContainsFunc(names, ofPyTorch) {
		return x, nil
	}
	var missing error
	find := func(name string) int {
		i, ok := at[name]
		if !ok && missing == nil {
			missing = violated(ICounted, "there is no counter %s", name)
		}
		return i
	}
	columnsOf := func(base string) (all [len(countedColumns)]int) {
		for i, c := range countedColumns {
			all[i] = find(base + "." + c)
		}
		return all
	}
	for n := range sums {
		for i, pool := range countedPools {
			x.sums[n][i] = columnsOf(sums[n].name + "." + pool)
		}
	}
	for _, name := range names {
		if base, ok := strings.CutSuffix(name, "."+countedColumns[current]); ok {
			x.columns = append(x.columns, columnsOf(base))
		}
	}
	x.ooms = find("num_ooms")
	x.retries, x.taken = slices.Index(names, "num_alloc_retries"), slices.Index(names, "num_device_alloc")
	return x, missing
}

// ofPyTorch reports whether PyTorch has a counter of this name, too.
func ofPyTorch(name string) bool {
	base, _, columned := strings.Cut(name, ".")
	return name == "num_ooms" || columned && slices.ContainsFunc(sums[:], func(s summed) bool { return s.name == base })
}

// counted has the counters before and after a call, and the kind of the call.
type counted struct {
	*counterIndex
	was, is           []int64
	cleared, depleted bool
	capturing         bool // a graph may have been captured on the stream of the request
	changed           bool // settings were changed
}

// check checks invariant I58 with the walk after the call. Current values equal the walk. An
// increase of a current value is the allocated minus the freed amount. A total is the sum of its
// pools. Peaks and totals never fall unless the statistics were cleared. Only a request that ran
// out of memory counts as such, once.
func (c *counted) check(walk []alloc.Chunk) error {
	if ooms := c.is[c.ooms] - c.was[c.ooms]; !c.cleared && ooms != one(c.depleted) {
		return violated(ICounted, "num_ooms rose by %d, want %d", ooms, one(c.depleted))
	}
	if err := c.retried(walk); err != nil {
		return err
	}
	for _, at := range c.columns {
		if err := c.row(at); err != nil {
			return err
		}
	}
	if err := c.shown(walk); err != nil {
		return err
	}
	for _, at := range c.sums {
		for k := range countedColumns {
			all, small, large := c.is[at[0][k]], c.is[at[1][k]], c.is[at[2][k]]
			if column(k) != peak && all != small+large || all > small+large || all < max(small, large) {
				return violated(ICounted, "%s is %d, the two pools have %d and %d", c.names[at[0][k]], all, small, large)
			}
		}
	}
	return nil
}

// retried checks the number of requests that were retried after all caches were released. Each
// request that ran out of memory was, unless during a capture. Any other request that was
// retried took memory then; where segments grow, free memory of one may be enough.
func (c *counted) retried(walk []alloc.Chunk) error {
	if c.cleared || c.retries < 0 || c.taken < 0 {
		return nil
	}
	retries, taken := c.is[c.retries]-c.was[c.retries], c.is[c.taken]-c.was[c.taken]
	switch {
	case c.depleted && retries != one(!c.capturing):
		return violated(ICounted, "num_alloc_retries rose by %d as a request ran out of memory, want %d", retries,
			one(!c.capturing))
	case !c.depleted && retries != 0 && (retries != 1 || taken == 0 && !slices.ContainsFunc(walk, grows)):
		return violated(ICounted, "num_alloc_retries rose by %d for a request that took memory %d times", retries, taken)
	}
	return nil
}

func grows(c alloc.Chunk) bool { return c.Owner == power.OwnerExpandable }

func (c *counted) row(at [len(countedColumns)]int) error {
	n, most := c.is[at[current]], c.is[at[peak]]
	// PyTorch compares a block with the max_split_size of its grant, and with that of its free.
	signed := c.changed && strings.HasPrefix(c.names[at[current]], "oversize_")
	if n < 0 && !signed || n > most {
		return violated(ICounted, "%s is %d with a peak of %d", c.names[at[current]], n, most)
	}
	if c.cleared {
		return nil
	}
	var rose [len(countedColumns)]int64
	for k, i := range at {
		if rose[k] = c.is[i] - c.was[i]; column(k) != current && rose[k] < 0 {
			return violated(ICounted, "%s fell from %d to %d", c.names[i], c.was[i], c.is[i])
		}
	}
	if rose[totalAllocated]-rose[totalFreed] != rose[current] {
		return violated(ICounted, "%s rose by %d, with %d allocated and %d freed", c.names[at[current]], rose[current],
			rose[totalAllocated], rose[totalFreed])
	}
	return nil
}

// withoutSlack returns the chunks that a strategy asked for and can use. Neither counters nor
// history have the bytes that the device added to a region, nor pages that it refused to take
// back.
func withoutSlack(walk []alloc.Chunk) []alloc.Chunk {
	slack := func(c alloc.Chunk) bool { return c.State == alloc.Slack }
	if !slices.ContainsFunc(walk, slack) {
		return walk
	}
	return slices.DeleteFunc(slices.Clone(walk), slack)
}

// shown compares the counters that are sums with the walk.
func (c *counted) shown(walk []alloc.Chunk) error {
	walk = withoutSlack(walk)
	var want [len(sums)][len(countedPools)]int64
	for i, chunk := range walk {
		alone := (i == 0 || walk[i-1].Region != chunk.Region) && (i+1 == len(walk) || walk[i+1].Region != chunk.Region)
		split := chunk.State == alloc.Free && chunk.Owner != power.OwnerExpandable && !alone
		pool := 1
		if chunk.Class == power.ClassLarge {
			pool = 2
		}
		for n := range sums {
			of := sums[n].of(chunk, split)
			want[n][0] += of
			want[n][pool] += of
		}
	}
	for n := range sums {
		for i := range countedPools {
			at := c.sums[n][i]
			if got := c.is[at[current]]; got != want[n][i] {
				return violated(ICounted, "%s is %d, the walk says %d", c.names[at[current]], got, want[n][i])
			}
			most := max(c.was[at[peak]], want[n][i])
			if got := c.is[at[peak]]; sums[n].once && !c.cleared && got != most {
				return violated(ICounted, "%s is %d, want %d", c.names[at[peak]], got, most)
			}
		}
	}
	return nil
}

func (r *runner) observeCounters() error {
	if !r.powers.has(power.PowerCounted) {
		return nil
	}
	var names []string
	same := true
	r.is.counters = r.is.counters[:0]
	_ = power.Counters(r.main.Strategy, func(name string, value int64) bool { // it has the power
		i := len(r.is.counters)
		r.is.counters = append(r.is.counters, value)
		if r.index == nil {
			names = append(names, name)
		} else {
			same = same && i < len(r.index.names) && r.index.names[i] == name
		}
		return true
	})
	if r.index == nil {
		index, err := newCounterIndex(names)
		if err != nil {
			return r.judge(err)
		}
		r.index = index
	}
	if !same || len(r.is.counters) != len(r.index.names) {
		return r.judge(violated(ICounted, "the counters are others than before, or in another order"))
	}
	if len(r.index.columns) == 0 {
		return nil
	}
	if r.step == 0 {
		r.was.counters = make([]int64, len(r.is.counters))
	}
	c := counted{r.index, r.was.counters, r.is.counters, r.outcome == cleared, r.outcome == depleted, r.capturing(),
		len(r.confs) > 0}
	return r.judge(c.check(r.is.walk))
}

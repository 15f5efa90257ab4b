package props

import (
	"math/bits"
	"math/rand"
	"reflect"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// Profile guides the generator. Sizes are bytes.
type Profile struct {
	Operations int           // operations in a sequence
	Quantum    device.Size   // smallest unit of the strategy
	Max        device.Size   // largest request it can ever grant
	Room       device.Size   // bound by the device or the strategy's limit
	Boundaries []device.Size // sizes around which it decides differently
	Frontier   bool          // whether it has a safe frontier
	Streams    bool          // whether streams can be recorded for its blocks
	Poller     bool          // whether it can look for deferred frees
	Pools      bool          // whether it has private pools
	Confs      []string      // settings to change to

	learns bool // whether it uses hints of the program
}

// Sequences returns a generator of operation sequences ([Sequence]) with a shrinker. It
// draws everything from the generator's own source of randomness, so that a seed decides
// the sequence. Every sequence has a mix of its own: how fast it fills memory, and
// whether its sizes are all different or drawn from a handful.
func Sequences(p Profile) gopter.Gen {
	return func(params *gopter.GenParameters) *gopter.GenResult {
		t := newMix(params.Rng, p)
		element := func(params *gopter.GenParameters) *gopter.GenResult {
			return gopter.NewGenResult(t.op(params.Rng), shrinkOp)
		}
		sized := *params
		sized.MinSize, sized.MaxSize = p.Operations, p.Operations
		r := gen.SliceOf(element, reflect.TypeFor[Op]())(&sized)
		r.Result = Sequence(r.Result.([]Op))
		r.ResultType = reflect.TypeFor[Sequence]()
		return r
	}
}

// streams and pools are how many streams and private pools a sequence has.
const (
	streams = 4
	pools   = 3
)

type weighted struct {
	weight int
	kind   Kind
}

// mix is the parameters of one sequence.
type mix struct {
	Profile
	most    device.Size // largest request with a chance
	kinds   []weighted
	total   int
	palette []device.Size // the handful of sizes of a churning sequence, nil for none
}

func newMix(rng *rand.Rand, p Profile) *mix {
	t := &mix{Profile: p, most: min(p.Room, p.Max)}
	allocs := []int{40, 50, 50, 70}[rng.Intn(4)] // of about 90: balanced or filling
	t.kinds = []weighted{
		{allocs, OpAlloc}, {90 - allocs, OpFree}, {2, OpDoubleFree}, {2, OpInterior}, {1, OpForeign},
		{1, OpNull}, {2, OpTrim}, {1, OpClear}, {2, OpFault},
	}
	if p.Frontier {
		t.kinds = append(t.kinds, weighted{6, OpFrontier})
	}
	if p.Streams {
		t.kinds = append(t.kinds, weighted{10, OpUse}, weighted{8, OpDrain})
	}
	if p.Poller {
		t.kinds = append(t.kinds, weighted{4, OpPoll})
	}
	if p.Pools && rng.Intn(4) != 0 { // else nothing is redirected
		t.kinds = append(t.kinds, weighted{7, OpPoolBegin}, weighted{12, OpPoolEnd}, weighted{7, OpPoolRelease})
	}
	if len(p.Confs) > 0 && rng.Intn(3) == 0 { // else the settings stay
		t.kinds = append(t.kinds, weighted{4, OpConf})
	}
	for _, k := range t.kinds {
		t.total += k.weight
	}
	if rng.Intn(3) == 0 {
		for range 2 + rng.Intn(4) {
			n := t.size(rng)
			for n == 0 || n > t.most {
				n = t.size(rng)
			}
			t.palette = append(t.palette, n)
		}
	}
	return t
}

func (t *mix) op(rng *rand.Rand) Op {
	n := rng.Intn(t.total)
	var o Op
	for _, k := range t.kinds {
		if n -= k.weight; n < 0 {
			o.Kind = k.kind
			break
		}
	}
	switch o.Kind {
	case OpAlloc:
		t.request(rng, &o)
	case OpNull, OpTrim, OpClear, OpPoll:
	case OpDrain:
		o.Stream = device.Stream(rng.Intn(streams))
	case OpUse:
		o.Pick, o.Stream = uint64(rng.Intn(1<<16)), device.Stream(rng.Intn(streams))
	case OpPoolBegin, OpPoolEnd, OpPoolRelease:
		t.pool(rng, &o)
	case OpConf:
		o.Conf = t.Confs[rng.Intn(len(t.Confs))]
	case OpFault:
		o.Pick = 1 + uint64(rng.Intn(3))
	default:
		o.Pick = uint64(rng.Intn(1 << 16))
	}
	return o
}

// pool draws the fields of an operation of private pools: mostly one of a few pools, rarely the
// default pool, which is not private.
func (t *mix) pool(rng *rand.Rand, o *Op) {
	if rng.Intn(20) != 0 {
		o.Pool = alloc.PoolID(1 + rng.Intn(pools))
	}
	if o.Kind != OpPoolBegin {
		return
	}
	o.Stream = power.AllStreams
	if rng.Intn(2) == 0 {
		o.Stream = device.Stream(rng.Intn(streams))
	}
}

func (t *mix) request(rng *rand.Rand, o *Op) {
	if t.palette != nil && rng.Intn(10) != 0 {
		o.Size = t.palette[rng.Intn(len(t.palette))]
	} else {
		o.Size = t.size(rng)
	}
	if rng.Intn(3) == 0 {
		o.Align = t.align(rng)
	}
	if t.Streams || rng.Intn(4) == 0 {
		o.Stream = device.Stream(rng.Intn(streams))
	}
	if rng.Intn(3) == 0 {
		o.Hint = alloc.Hint(rng.Intn(3))
	}
	if t.Frontier && rng.Intn(4) == 0 {
		o.Before = uint64(rng.Intn(t.Operations/2 + 1))
	}
}

// size draws a number of bytes: mostly one that fits, sometimes one that just fits, rarely one
// that never can.
func (t *mix) size(rng *rand.Rand) device.Size {
	switch n := rng.Intn(100); {
	case n < 25:
		return 1 + device.Size(rng.Int63n(int64(4*t.Quantum)))
	case n < 55:
		return logUniform(rng, min(t.Room/4, t.Max))
	case n < 75:
		return t.boundary(rng)
	case n < 85:
		return nudge(rng, device.Size(1)<<rng.Intn(bits.Len64(uint64(t.most))))
	case n < 90:
		return t.most/8 + device.Size(rng.Int63n(int64(t.most)))
	case n < 93:
		return nudge(rng, t.Max)
	case n < 95:
		return nudge(rng, t.Room)
	case n < 97:
		return 1<<40 + device.Size(rng.Int63n(1<<50))
	case n < 98:
		return 0
	default:
		return ^device.Size(rng.Int63n(int64(2 * t.Quantum)))
	}
}

// boundary draws a size near one at which the strategy decides differently.
func (t *mix) boundary(rng *rand.Rand) device.Size {
	if n := len(t.Boundaries); n > 0 && rng.Intn(4) != 0 {
		return nudge(rng, t.Boundaries[rng.Intn(n)])
	}
	return nudge(rng, t.Quantum*device.Size(1+rng.Intn(16)))
}

// align draws an alignment: a power of two up to 4 MiB, rarely a larger one or a number that is
// not a power of two.
func (t *mix) align(rng *rand.Rand) device.Size {
	switch n := rng.Intn(40); {
	case n == 0:
		return 1 << (30 + rng.Intn(34))
	case n < 3:
		return 3 * (1 + device.Size(rng.Intn(1<<10)))
	case n < 4:
		return ^device.Size(0)
	default:
		return 1 << rng.Intn(23)
	}
}

// nudge returns n, or one byte to either side. Neither end wraps around.
func nudge(rng *rand.Rand, n device.Size) device.Size {
	switch d := rng.Intn(3); {
	case d == 0 && n > 0:
		return n - 1
	case d == 1 && n+1 != 0:
		return n + 1
	}
	return n
}

// logUniform draws from [1, most] so that every power of two is equally likely.
func logUniform(rng *rand.Rand, most device.Size) device.Size {
	top := device.Size(1) << rng.Intn(max(bits.Len64(uint64(most)), 1))
	return top + device.Size(rng.Int63n(int64(top)))
}

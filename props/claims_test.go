package props_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies/bestfit"
	"github.com/vramyard/vramyard/strategies/caching"
)

// lie is a false claim of boastful.
type lie string

const (
	truthful       lie = ""
	preallocates   lie = "it preallocates, though it grows"
	grows          lie = "it grows, though it preallocates"
	unbound        lie = "its capacity does not matter, though half of it is its limit"
	exceeds        lie = "it fits a device of half the size"
	remembers      lie = "it fits a device, though it adds up all devices that it was for"
	reduces        lie = "it ignores which blocks are split"
	reducesHeld    lie = "it ignores its limit and threshold if the device is large enough"
	weighsNothing  lie = "it has no metadata"
	weighsTooMuch  lie = "it has twice the metadata"
	spans          lie = "it does the same at every capacity, though it has a limit"
	cannotBeFitted lie = "it fits a device, though it is built for half of it"
)

// boastful is the configuration of a best fit, and in some cases of PyTorch's allocator, that makes
// a false claim.
type boastful struct {
	Lie   lie
	Limit device.Size
	Plain bool // reduced
}

func (b boastful) Preallocates() bool { return b.Lie == preallocates }
func (b boastful) Unbound() bool      { return b.Lie == unbound }

func (b boastful) ForCapacity(n device.Size) boastful {
	switch b.Lie {
	case unbound, reduces, reducesHeld:
		return b
	case exceeds:
		n *= 2
	case cannotBeFitted:
		n /= 2
	case remembers:
		n += b.Limit
	}
	b.Limit = n
	return b
}

func (b boastful) Reduced(d setting.Demand) boastful {
	b.Plain = b.Lie == reduces || b.Lie == reducesHeld && d.Held != 0 && d.Held <= d.Capacity
	return b
}

func newBoastful(src device.Source, b boastful) (alloc.Strategy, error) {
	switch b.Lie {
	case unbound:
		return caching.New(src, caching.Config{MemoryFraction: 0.5})
	case reduces:
		conf := "max_split_size_mb:21"
		if b.Plain {
			conf = ""
		}
		return caching.New(src, caching.Config{Conf: conf})
	case reducesHeld:
		c := caching.Config{Conf: "garbage_collection_threshold:0.4", MemoryFraction: 0.9}
		if b.Plain {
			c = caching.Config{}
		}
		return caching.New(src, c)
	case weighsNothing, weighsTooMuch:
		s, err := bestfit.New(src, bestfit.Config{Limit: b.Limit, Growth: "doubling"})
		return &misweighed{wrap.Forward(s, nil), s, b.Lie}, err
	case spans:
		s, err := bestfit.New(src, bestfit.Config{Limit: b.Limit, Growth: "doubling"})
		return &everywhere{wrap.Forward(s, nil)}, err
	case grows:
		return bestfit.New(src, bestfit.Config{Limit: b.Limit})
	}
	return bestfit.New(src, bestfit.Config{Limit: b.Limit, Growth: "doubling"})
}

// misweighed is a strategy that does not know its metadata.
type misweighed struct {
	wrap.Forwarder
	inner *bestfit.Allocator
	lie   lie
}

func (m *misweighed) MetadataBytes() device.Size {
	if m.lie == weighsNothing {
		return 0
	}
	return 2 * m.inner.MetadataBytes()
}

// everywhere is a strategy that says it does the same at every capacity.
type everywhere struct{ wrap.Forwarder }

func (*everywhere) CapacitySpan() device.Span { return device.Span{} }

func TestFalseClaimIsFound(t *testing.T) {
	for l, want := range map[lie]props.Number{
		truthful: 0, preallocates: props.IPreallocated, grows: props.IPreallocated, unbound: props.IUnbound,
		exceeds: props.IFitted, remembers: props.IFitted, cannotBeFitted: props.IFitted, reduces: props.IReduced,
		reducesHeld: props.IReduced, spans: props.ISpan, weighsNothing: props.IMetered, weighsTooMuch: props.IMetered,
	} {
		t.Run(string(l), func(t *testing.T) {
			s := props.SubjectOf("boastful", newBoastful, boastful{Lie: l, Limit: device.GiB}, sim.Config{Capacity: device.GiB},
				promise.Set{})
			_, claims := props.Claims(s, props.Options{Sequences: 50})
			_, relations := props.Metamorphic(s, props.Options{Sequences: 50, Operations: 60})
			for _, err := range []error{claims, relations, props.Metadata(s)} {
				var v *props.Violation
				if err != nil {
					require.ErrorAs(t, err, &v)
					require.Equal(t, want, v.Number)
					t.Log(err)
					want = 0
				}
			}
			require.Zero(t, want, "not found")
			s.Promises.Except = []promise.Exception{{Invariant: "I68"}, {Invariant: "I69"}, {Invariant: "I70"},
				{Invariant: "I71"}, {Invariant: "I72"}, {Invariant: "I75"}}
			_, claims = props.Claims(s, props.Options{Sequences: 50})
			_, relations = props.Metamorphic(s, props.Options{Sequences: 50, Operations: 60})
			require.NoError(t, claims)
			require.NoError(t, relations)
			require.NoError(t, props.Metadata(s))
		})
	}
}

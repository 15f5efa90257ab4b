//go:build linux && (amd64 || arm64) && !nocuda

package mirror_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/cuda"
	"github.com/vramyard/vramyard/device/cuda/cudatest"
	"github.com/vramyard/vramyard/device/devicetest"
	"github.com/vramyard/vramyard/device/mirror"
	"github.com/vramyard/vramyard/device/sim"
)

// model is the configuration of a model with the granularity and rounding of device/cuda.
var model = sim.Config{Round: 512, Align: 512, Memory: sim.Filled, Capacity: 256 * device.MiB}

// second is a simulated device in place of a card.
type second struct{ *sim.Device }

// Close implements [mirror.Card].
func (second) Close() error { return nil }

// newSim returns a simulated device.
func newSim(t testing.TB, c sim.Config) *sim.Device {
	t.Helper()
	d, err := sim.New(c)
	require.NoError(t, err)
	return d
}

// newSecond returns a simulated device with other addresses, in place of a card.
func newSecond(t testing.TB) second {
	t.Helper()
	c := model
	c.Policy, c.Ordinal = sim.TopDown, 77
	return second{newSim(t, c)}
}

// suite runs the conformance suite over mirrors. The only difference permitted is but.
func suite(t *testing.T, card func(t testing.TB, ordinal int) mirror.Card, but string) {
	t.Helper()
	devicetest.Run(t, func(t testing.TB, ordinal int) device.Device {
		c := model
		c.Ordinal = uint8(ordinal)
		d := mirror.New(newSim(t, c), card(t, ordinal), mirror.Options{Extent: mirror.Bytes, Room: device.TiB})
		t.Cleanup(func() {
			if err := d.Settle(); err != nil && but != "" {
				require.Contains(t, err.Error(), but)
			} else {
				require.NoError(t, err)
			}
			require.NoError(t, d.Close())
		})
		return d
	})
}

func TestAMirrorIsADevice(t *testing.T) {
	suite(t, func(t testing.TB, _ int) mirror.Card { return newSecond(t) }, "")
}

// besideCUDA runs the suite over mirrors of the first GPUs of a driver.
func besideCUDA(t *testing.T, driver string, gpus int) {
	t.Helper()
	suite(t, func(t testing.TB, ordinal int) mirror.Card {
		d, err := cuda.Open(cuda.Config{Driver: driver, Ordinal: ordinal % gpus, Limit: model.Capacity})
		require.NoError(t, err)
		return d
	}, `the model answers "done", the card "unsupported operation"`) // handles are mapped from their start only
}

// TestOnTheGPU mirrors a real card, if there is one.
func TestOnTheGPU(t *testing.T) {
	list, err := cuda.List("")
	if err != nil || len(list.GPUs) == 0 {
		t.Skipf("no GPU: %v", err)
	}
	besideCUDA(t, "", len(list.GPUs))
}

func TestCardAndModelAgree(t *testing.T) {
	for name, without := range map[string][]cudatest.Part{
		"all": nil, "plain": {cudatest.Virtual, cudatest.Pools},
	} {
		t.Run(name, func(t *testing.T) {
			driver := cudatest.Build(t, without...)
			cudatest.Steer(t, driver)
			besideCUDA(t, driver, 2)
		})
	}
}

// TestMirrorReturnsTheResultsOfItsModel makes the same calls on a mirror and on a model alone.
func TestMirrorReturnsTheResultsOfItsModel(t *testing.T) {
	d := mirror.New(newSim(t, model), newSecond(t), mirror.Options{Room: device.GiB})
	other := newSim(t, model)
	for _, size := range []device.Size{1, 1000, device.MiB, 300 * device.MiB} {
		got, err := d.Reserve(size, 0)
		want, wantErr := other.Reserve(size, 0)
		require.Equal(t, want, got)
		require.Equal(t, wantErr, err)
	}
	require.Equal(t, other.Usage(), d.Usage())
	require.NoError(t, d.Settle())
	require.EqualValues(t, 3, d.CardCalls()[device.CallReserve].Done)
	require.EqualValues(t, 1, d.CardCalls()[device.CallReserve].Failed)
}

// TestMarks writes to a region and to a range of many pages.
func TestMarks(t *testing.T) {
	card := newSecond(t)
	d := mirror.New(newSim(t, model), card, mirror.Options{Room: device.GiB})
	r, err := d.Reserve(10*device.MiB, 0)
	require.NoError(t, err)
	require.NoError(t, d.Fill(r.Addr, 100, 1))
	require.Equal(t, mirror.Traffic{Written: 100}, d.Traffic(), "byte for byte")
	require.NoError(t, d.Fill(r.Addr, r.Size, 2))
	require.Equal(t, mirror.Traffic{Written: 100 + 8*device.KiB}, d.Traffic(), "at both ends")
	g := d.Granularity()
	space, err := d.ReserveRange(4*g, 0, 0)
	require.NoError(t, err)
	for i := range device.Size(4) {
		h, err := d.CreateHandle(g)
		require.NoError(t, err)
		require.NoError(t, d.Map(space.Addr.Add(i*g), g, h, 0))
	}
	require.NoError(t, d.SetAccess(space.Addr, 4*g, device.AccessReadWrite))
	require.NoError(t, d.Fill(space.Addr, 4*g, 3))
	require.Equal(t, mirror.Traffic{Written: 100 + 16*device.KiB + 3*64}, d.Traffic(), "and at each page")
	_, same, err := d.Compare(space.Addr, 4*g, 3)
	require.NoError(t, err)
	require.True(t, same)
	require.Equal(t, 8*device.KiB+3*64, d.Traffic().Read)
	require.NoError(t, d.Differs())
	for at := range card.Ranges { // overwrite the card's memory
		require.NoError(t, card.Fill(at.Addr.Add(2*g), 4, 9))
	}
	_, same, err = d.Compare(space.Addr, 4*g, 3)
	require.NoError(t, err)
	require.True(t, same, "the model's answer")
	require.ErrorContains(t, d.Differs(), "the contents written at "+space.Addr.Add(2*g).String()+" are lost on the card")
}

// liar is a card that returns wrong results.
type liar struct {
	second
	granularity device.Size
	reserve     func(device.Region, error) (device.Region, error)
	release     error
	free        device.Size // reported in addition to the free bytes
	event       bool        // events are never done
	forgets     bool        // fills are lost
}

// Granularity implements [device.VirtualMemory].
func (l *liar) Granularity() device.Size { return max(l.granularity, l.second.Granularity()) }

// Reserve implements [device.Source].
func (l *liar) Reserve(size, align device.Size) (device.Region, error) {
	r, err := l.second.Reserve(size, align)
	if l.reserve != nil {
		return l.reserve(r, err)
	}
	return r, err
}

// Release implements [device.Source].
func (l *liar) Release(a device.Addr) error {
	if l.release != nil {
		return l.release
	}
	return l.second.Release(a)
}

// MemoryInfo implements [device.MemoryInfo].
func (l *liar) MemoryInfo() (free, total device.Size, err error) {
	free, total, err = l.second.MemoryInfo()
	return free + l.free, total, err
}

// Done implements [device.Streams].
func (l *liar) Done(e device.Event) (bool, error) {
	done, err := l.second.Done(e)
	return done && !l.event, err
}

// Fill implements [device.Contents].
func (l *liar) Fill(a device.Addr, n device.Size, pattern uint32) error {
	if l.forgets {
		return nil
	}
	return l.second.Fill(a, n, pattern)
}

// use makes calls of each kind.
func use(t *testing.T, d *mirror.Device) {
	t.Helper()
	var all []device.Region
	for range 3 {
		r, err := d.Reserve(3000, 1024)
		require.NoError(t, err)
		require.NoError(t, d.Fill(r.Addr, r.Size, 5))
		all = append(all, r)
	}
	e, err := d.NewEvent()
	require.NoError(t, err)
	require.NoError(t, d.Record(e, 1))
	require.NoError(t, d.Drain(1))
	done, err := d.Done(e)
	require.NoError(t, err)
	require.True(t, done)
	_, _, err = d.MemoryInfo()
	require.NoError(t, err)
	for _, r := range all {
		_, same, err := d.Compare(r.Addr, r.Size, 5)
		require.NoError(t, err)
		require.True(t, same)
		require.NoError(t, d.Release(r.Addr))
	}
	require.ErrorIs(t, d.Release(all[0].Addr), device.ErrInvalid)
}

func TestDifferencesOfACardAreReported(t *testing.T) {
	var first, upper device.Region
	for want, l := range map[string]*liar{
		"": {},
		"the granularity is 2MiB on the model, 4MiB on the card": {
			granularity: 4 * device.MiB},
		`release 0x7f0000000000: the model answers "done", the card "device: out of memory"`: {
			release: device.ErrOutOfMemory},
		"memory-info: the model says that 268426240 of 268435456 bytes are free, the card that 268426241 of 268435456 are": {
			free: 1},
		"the card's is not after the host has waited for it": {
			event: true},
		"the contents written at 0x7f0000000000 are lost on the card": {
			forgets: true},
		`reserve 3000: the model answers "done", the card "device: out of memory"`: {
			reserve: func(device.Region, error) (device.Region, error) {
				return device.Region{}, device.ErrOutOfMemory
			}},
		"reserve 3000: the card gives address 0": {reserve: func(r device.Region, err error) (device.Region, error) {
			r.Addr = 0
			return r, err
		}},
		"no multiple of 1024": {reserve: func(r device.Region, err error) (device.Region, error) {
			r.Addr += 512
			return r, err
		}},
		"reserve 3000: the model gives 3072 bytes, the card 3584": {
			reserve: func(r device.Region, err error) (device.Region, error) {
				r.Size += 512
				return r, err
			}},
		"which lies in 3072 bytes that it gave at": {reserve: func(r device.Region, err error) (device.Region, error) {
			if first.Size == 0 {
				first = r
				return r, err
			}
			r.Addr = first.Addr.Add(1024)
			return r, err
		}},
		"which overlap 3072 bytes that it gave at": {reserve: func(r device.Region, err error) (device.Region, error) {
			if upper.Size == 0 {
				upper = r
				return r, err
			}
			r.Addr = upper.Addr - 2048
			return r, err
		}},
	} {
		l.second = newSecond(t)
		d := mirror.New(newSim(t, model), l, mirror.Options{Room: device.GiB})
		use(t, d)
		if want == "" {
			require.NoError(t, d.Settle())
			continue
		}
		require.ErrorContains(t, d.Settle(), want)
		asked := d.CardCalls()
		use(t, d)
		require.Equal(t, asked, d.CardCalls(), "the card is not asked any more")
	}
}

// TestTheModelHasTheCapacityOfTheCard requests more alignment and more addresses than a card has,
// with a card and without.
func TestTheModelHasTheCapacityOfTheCard(t *testing.T) {
	// from top down there is 1 TiB
	d := mirror.New(newSim(t, model), second{newSim(t, model)}, mirror.Options{Room: 4 * device.MiB})
	vm, ok := device.VirtualMemoryOf(d.ModelOnly(newSim(t, model)))
	require.True(t, ok)
	for _, v := range []device.VirtualMemory{d, vm} {
		of := v.(device.Device)
		first, err := of.Reserve(1000, 4*device.MiB)
		require.NoError(t, err)
		_, err = of.Reserve(1000, 1024)
		require.ErrorIs(t, err, device.ErrOutOfMemory, "the first took all room")
		require.NoError(t, of.Release(first.Addr))
		_, err = of.Reserve(1000, 1024)
		require.NoError(t, err)
		for range 2 {
			_, err = v.ReserveRange(2*device.TiB, 0, 0)
			require.NoError(t, err)
		}
		_, err = v.ReserveRange(v.Granularity(), 0, 0)
		require.ErrorIs(t, err, device.ErrOutOfMemory)
		_, err = v.ReserveRange(1, 0, 0)
		require.ErrorIs(t, err, device.ErrGranularity)
		u := of.Usage()
		require.EqualValues(t, 1, u.Calls[device.CallReserve].Failed)
		require.EqualValues(t, 2, u.Calls[device.CallReserveRange].Failed)
	}
	require.NoError(t, d.Settle())
}

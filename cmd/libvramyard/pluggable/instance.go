package pluggable

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// Align in bytes is the alignment of every block, as in PyTorch's own allocator.
const Align device.Size = 512

// block is a live block, or one whose free is pending.
type block struct {
	size    device.Size // bytes requested
	granted device.Size
	stream  device.Stream
	id      uint32
	used    bool // whether another stream has used it
}

// instance is the allocator of one GPU.
type instance struct {
	mu       sync.Mutex
	name     string // name of the strategy
	ordinal  int
	shift    device.Addr // offset from device addresses to program addresses
	dev      *bound
	streams  device.Streams
	total    device.Size // capacity of the device; 0 if unbounded
	strategy alloc.Strategy
	rounded  bool // the strategy does not honor Align, so sizes are rounded up to it

	live    map[device.Addr]block
	pending map[device.Addr]block // freed, still used by other streams
	waiting device.Size           // granted bytes of the pending blocks
	ids     []uint32              // free trace ids
	next    uint32

	pools  pools
	rec    *recorder // nil if nothing is recorded
	poison *poison   // nil without poisoning
	count  counts
}

// counts are counters that the strategy does not have.
type counts struct {
	zero, badFrees, uses, badUses, trims, ladders, ooms uint64

	refused device.Size // bytes of the last request that failed
}

func newInstance(c *config, ordinal int, dev device.Device, share float64) (*instance, error) {
	n := &instance{
		name: c.setup.Name, ordinal: ordinal, dev: newBound(dev), live: map[device.Addr]block{},
		pending: map[device.Addr]block{}, pools: newPools(),
	}
	if c.sim != nil {
		n.shift = device.Addr(ordinal) << simShift
	}
	var ok bool
	if n.streams, ok = device.StreamsOf(dev); !ok {
		return nil, errors.New("the device has no streams")
	}
	capacity, err := n.measure(c, share)
	if err != nil {
		return nil, err
	}
	setup := c.setup
	if capacity > 0 && !c.limited {
		setup = setup.ForCapacity(capacity)
	}
	if n.strategy, err = wrap.Streamed(n.dev, setup.New); err != nil {
		return nil, fmt.Errorf("strategy %s on %s: %w", setup.Name, c.device, err)
	}
	if c.poison {
		memory, ok := device.ContentsOf(dev)
		if !ok {
			return nil, errContents
		}
		n.poison = &poison{memory: memory, streams: n.streams, dev: n.dev}
		n.dev.gone = n.poison.forget
	}
	if c.trace != "" {
		n.rec = newRecorder(n.header(c, setup), c.events)
	}
	return n, nil
}

// simShift separates the address ranges of simulated GPUs, which all start at the same address.
const simShift = 44

// measure reads the capacity of the device and returns the limit for the strategy. On a real device
// libraries need memory beside the allocator, so the limit is below the free memory.
func (n *instance) measure(c *config, share float64) (device.Size, error) {
	info, ok := device.MemoryInfoOf(n.dev)
	if !ok {
		return 0, nil
	}
	free, total, err := info.MemoryInfo()
	if err != nil {
		return 0, fmt.Errorf("memory of device %d: %w", n.ordinal, err)
	}
	n.total = total
	if c.sim == nil {
		free -= free / headroom
	}
	if err := n.restrict(share); err != nil {
		return 0, err
	}
	if n.dev.most > 0 {
		free = min(free, n.dev.most)
	}
	return device.AlignDown(free, 2*device.MiB), nil
}

// headroom is the fraction of a real device that a preallocating strategy leaves free: a sixteenth,
// 5 GiB of 80 GiB. Kernels, cuBLAS and NCCL take some hundreds of MiB each.
const headroom = 16

// restrict limits the bytes held to a share of the device.
func (n *instance) restrict(share float64) error {
	switch {
	case share == 0:
		return nil
	case n.total == 0:
		return fmt.Errorf("memory fraction %v: device %d has no bound", share, n.ordinal)
	}
	n.dev.most = device.Size(share * float64(n.total))
	return nil
}

func (n *instance) header(c *config, setup setting.Setup) trace.Header {
	settings, _ := json.Marshal(setup.Config) // the configuration was read from JSON
	return trace.Header{Name: "pytorch-gpu" + strconv.Itoa(n.ordinal), Meta: []trace.Pair{
		{Key: "source", Value: "libvramyard " + Version}, {Key: "strategy", Value: setup.Name},
		{Key: "config", Value: string(settings)}, {Key: "device", Value: c.device},
		{Key: "ordinal", Value: strconv.Itoa(n.ordinal)}, {Key: "capacity", Value: strconv.FormatUint(uint64(n.total), 10)},
	}}
}

// alloc grants a block; into is the private pool of the request, 0 for none.
func (n *instance) alloc(size device.Size, s device.Stream, into alloc.PoolID) (device.Addr, error) {
	if size == 0 {
		n.count.zero++
		return 0, nil
	}
	if err := n.redirect(into, s); err != nil {
		return 0, err
	}
	if len(n.pending) > 0 && !n.pools.open() {
		_, _ = power.Poll(n.strategy) // a device error is retried at the next poll
	}
	b, err := n.grant(size, s)
	if errors.Is(err, alloc.ErrOutOfMemory) && !n.pools.open() {
		n.count.ladders++
		n.relieve()
		b, err = n.grant(size, s)
	}
	n.settle()
	if err != nil {
		n.count.ooms++
		n.count.refused = size
		n.note(trace.Refused, 0, uint64(size), s)
		return 0, n.refusal(size, err)
	}
	if n.poison != nil {
		if err := n.poison.granted(b.Addr, b.Size); err != nil {
			return 0, errors.Join(err, n.strategy.Free(b.Addr))
		}
	}
	live := block{size: size, granted: b.Size, stream: s, id: n.newID()}
	n.live[b.Addr] = live
	n.note(trace.Alloc, live.id, uint64(size), s)
	return b.Addr + n.shift, nil
}

// grant requests an aligned block from the strategy.
func (n *instance) grant(size device.Size, s device.Stream) (alloc.Block, error) {
	if !n.rounded {
		b, err := n.strategy.Alloc(alloc.Request{Size: size, Align: Align, Stream: s})
		if !errors.Is(err, alloc.ErrInvalidRequest) {
			return b, err
		}
	}
	if !device.CanAlignUp(size, Align) {
		return alloc.Block{}, alloc.ErrInvalidRequest
	}
	b, err := n.strategy.Alloc(alloc.Request{Size: device.AlignUp(size, Align), Stream: s})
	if err != nil {
		return b, err
	}
	n.rounded = true
	if !b.Addr.IsAligned(Align) {
		return alloc.Block{}, errors.Join(
			fmt.Errorf("strategy %s gives blocks at multiples of less than %d bytes", n.name, Align), n.strategy.Free(b.Addr))
	}
	return b, nil
}

// relieve tries to free memory: it waits for all work, which completes pending frees, and trims the
// strategy. If the device refuses, the next request fails.
func (n *instance) relieve() {
	if n.streams.SyncDevice() == nil {
		_, _ = power.Poll(n.strategy)
	}
	_, _ = power.Trim(n.strategy)
}

// free frees a block. The error is a mistake of the program or a stale write to poisoned memory.
func (n *instance) free(a device.Addr) error {
	a -= n.shift
	b, ok := n.live[a]
	if !ok {
		n.count.badFrees++
		return fmt.Errorf("free of %v on device %d: no live block starts there", a+n.shift, n.ordinal)
	}
	var err error
	if n.poison != nil {
		err = n.poison.freed(a, b.granted, b.stream)
	}
	if err := n.strategy.Free(a); err != nil {
		return fmt.Errorf("free of %v on device %d: %w", a+n.shift, n.ordinal, err)
	}
	delete(n.live, a)
	n.note(trace.Free, b.id, 0, b.stream)
	if b.used {
		n.pending[a] = b
		n.waiting += b.granted
	} else {
		n.ids = append(n.ids, b.id)
	}
	n.settle()
	return err
}

func (n *instance) use(a device.Addr, s device.Stream) error {
	b, ok := n.live[a-n.shift]
	if !ok {
		n.count.badUses++
		return fmt.Errorf("record_stream of %v on device %d: no live block starts there", a, n.ordinal)
	}
	if err := power.RecordStream(n.strategy, a-n.shift, s); err != nil {
		return fmt.Errorf("record_stream of %v on device %d: %w", a, n.ordinal, err)
	}
	n.count.uses++
	if s != b.stream {
		b.used = true
		n.live[a-n.shift] = b
		n.note(trace.Use, b.id, 0, s)
	}
	return nil
}

// settle completes the pending frees that are done. It walks only if the statistics show that there
// are some.
func (n *instance) settle() {
	if len(n.pending) == 0 {
		return
	}
	s := n.strategy.Stats()
	if s.Active-s.Allocated == n.waiting {
		return
	}
	still := make(map[device.Addr]bool, len(n.pending))
	for c := range n.strategy.Walk {
		if c.State == alloc.Pending {
			still[c.Addr] = true
		}
	}
	for _, a := range sortedKeys(n.pending) {
		if b := n.pending[a]; !still[a] {
			delete(n.pending, a)
			n.waiting -= b.granted
			n.ids = append(n.ids, b.id)
			n.note(trace.Completed, b.id, 0, b.stream)
		}
	}
}

// empty releases cached memory, as torch.cuda.empty_cache does.
func (n *instance) empty() error {
	n.count.trims++
	if n.pools.open() {
		return nil // waiting is not allowed during a capture
	}
	var stale error
	if n.poison != nil {
		stale = n.poison.all()
	}
	if err := n.streams.SyncDevice(); err != nil {
		return err
	}
	if _, err := power.Poll(n.strategy); err != nil {
		return err
	}
	n.settle()
	n.note(trace.Trim, 0, 0, 0)
	if _, err := power.Trim(n.strategy); err != nil && !errors.Is(err, alloc.ErrUnsupported) {
		return err
	}
	return stale
}

// base returns the region that contains an address.
func (n *instance) base(a device.Addr) (at device.Addr, size device.Size, ok bool) {
	for c := range n.strategy.Walk {
		if c.Region != at {
			if ok {
				break
			}
			at, size = c.Region, 0
		}
		size += c.Size
		ok = ok || a-n.shift >= c.Addr && a-n.shift < c.End()
	}
	return at + n.shift, size, ok
}

func (n *instance) newID() uint32 {
	if last := len(n.ids) - 1; last >= 0 {
		id := n.ids[last]
		n.ids = n.ids[:last]
		return id
	}
	n.next++
	return n.next - 1
}

func (n *instance) note(k trace.Kind, id uint32, size uint64, s device.Stream) {
	if n.rec != nil {
		n.rec.note(k, id, size, s)
	}
}

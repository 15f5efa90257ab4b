package devicetest

import (
	"math/rand/v2"

	"github.com/vramyard/vramyard/device"
)

// poolBlock is a block that is live, or was freed after an event's mark.
type poolBlock struct {
	device.Region
	pool  device.Pool
	user  device.Stream // of the request
	freed device.Event  // recorded on the stream of the free just before it
}

// poolModel models pools as a list of live blocks and a list of blocks freed since the last
// synchronization.
type poolModel struct {
	*rig
	rng   *rand.Rand
	pools []device.Pool
	live  []poolBlock
	freed []poolBlock
}

// poolsAgree makes random calls and compares the device with the model.
func poolsAgree(r *rig) {
	was := r.d.Usage()
	m := &poolModel{rig: r, rng: r.rng(4), pools: []device.Pool{r.newPool(0), r.newPool(48 * device.MiB)}}
	for range 1500 {
		m.step()
		m.checkFigures()
	}
	for len(m.live) > 0 {
		m.free(len(m.live) - 1)
	}
	m.sync()
	for _, p := range m.pools {
		r.destroyPool(nil, p)
	}
	r.requireGrowth(was, device.Usage{})
}

func (m *poolModel) stream() device.Stream { return device.Stream(m.rng.IntN(4)) }

// step makes one call, or a few that belong together.
func (m *poolModel) step() {
	p := m.pools[m.rng.IntN(len(m.pools))]
	switch k := m.rng.IntN(40); {
	case k < 15:
		m.alloc(p)
	case k < 28:
		if len(m.live) > 0 {
			m.free(m.rng.IntN(len(m.live)))
		}
	case k < 30:
		m.misuse()
	case k < 32 && len(m.freed) > 0: // new work is ordered after the free
		m.wait(nil, m.stream(), m.freed[m.rng.IntN(len(m.freed))].freed)
	case k < 34:
		m.work(m.stream(), m.rng.Uint64N(100_000))
	case k == 34:
		m.syncStream(nil, m.stream())
	case k == 35:
		m.drain(m.stream())
	case k == 36:
		m.trimPool(nil, p, device.Size(m.rng.IntN(40))*device.MiB)
	case k == 37:
		m.setAttribute(nil, p, device.ReleaseThreshold, device.Size(m.rng.IntN(3))*20*device.MiB)
	case k == 38:
		flag := []device.PoolAttribute{device.FollowEvents, device.ReuseFinished, device.InsertWaits}[m.rng.IntN(3)]
		m.setAttribute(nil, p, flag, device.Size(m.rng.IntN(2)))
	default:
		m.sync()
	}
}

// alloc allocates a block. It must overlap no live block, and no freed block unless the stream is
// ordered after the free.
func (m *poolModel) alloc(p device.Pool) {
	if len(m.live) > 12 {
		return
	}
	size, s := device.Size(1)<<m.rng.IntN(23)+device.Size(m.rng.IntN(1000)), m.stream()
	var g device.Region
	err := m.try(oneOf{nil, device.ErrOutOfMemory}, device.CallAllocAsync, func() (err error) {
		g, err = m.pool.AllocAsync(p, size, s)
		return err
	}, p, size, s)
	if err != nil {
		if p != m.pools[1] {
			m.Fatalf("a pool without a limit has no %v for a block: %v", size, err)
		}
		return
	}
	m.requireFit(nil, g, size, 0)
	for _, b := range m.live {
		m.requireDisjoint([]device.Region{b.Region, g})
	}
	for _, b := range m.freed {
		if b.Addr < g.End() && g.Addr < b.End() {
			m.requireOrder(true, b.freed, s, "its block was freed and is granted again")
		}
	}
	m.live = append(m.live, poolBlock{Region: g, pool: p, user: s})
	if m.mem != nil {
		m.fill(nil, g.Addr, g.Size, uint32(g.Addr>>8))
	}
}

// free frees a live block, on the stream that used it or on a stream that waits for it.
func (m *poolModel) free(i int) {
	b := m.live[i]
	if m.mem != nil {
		m.requireFilled(b.Addr, b.Size, uint32(b.Addr>>8))
	}
	b.freed = m.newEvent()
	m.record(nil, b.freed, b.user)
	if s := m.stream(); m.rng.IntN(2) == 0 {
		m.wait(nil, s, b.freed)
		m.record(nil, b.freed, s)
		b.user = s
	}
	m.freeAsync(nil, b.Addr, b.user)
	m.live = append(m.live[:i], m.live[i+1:]...)
	m.freed = append(m.freed, b)
}

// misuse frees addresses at which no live block starts.
func (m *poolModel) misuse() {
	if len(m.live) > 0 {
		if b := m.live[m.rng.IntN(len(m.live))]; b.Size > 1 {
			m.freeAsync(device.ErrInvalid, b.Addr+1+device.Addr(m.rng.Uint64N(uint64(b.Size)-1)), m.stream())
		}
	}
	for _, b := range m.freed {
		again := false
		for _, x := range m.live {
			again = again || x.Addr == b.Addr
		}
		if !again {
			m.freeAsync(device.ErrInvalid, b.Addr, m.stream())
			return
		}
	}
}

// sync synchronizes the device and forgets the blocks freed before.
func (m *poolModel) sync() {
	m.syncDevice(nil)
	for _, b := range m.freed {
		m.destroyEvent(nil, b.freed)
	}
	m.freed = m.freed[:0]
}

// checkFigures compares the figures of pools with the model.
func (m *poolModel) checkFigures() {
	for _, p := range m.pools {
		used := device.Size(0)
		for _, b := range m.live {
			if b.pool == p {
				used += b.Size
			}
		}
		got, reserved := m.attribute(nil, p, device.UsedNow), m.attribute(nil, p, device.ReservedNow)
		if got != used || reserved < used || p == m.pools[1] && reserved > 48*device.MiB {
			m.Fatalf("blocks of %v are live; the pool reports %v used and %v reserved", used, got, reserved)
		}
	}
}

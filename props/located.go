package props

import (
	"errors"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// Located checks invariant I74 of the answer about an address: the live chunk of the walk that
// starts there, with sizes and labels of the model, or alloc.ErrInvalidFree.
func Located(walk []alloc.Chunk, m *Model, a device.Addr, c alloc.Chunk, err error) error {
	g, live := m.At(a)
	switch {
	case !live && !errors.Is(err, alloc.ErrInvalidFree):
		return violated(ILocated, "no live block starts at %v, and BlockAt answered %+v, %v; want %q", a, c, quoted(err),
			alloc.ErrInvalidFree)
	case !live:
		return nil
	case err != nil:
		return violated(ILocated, "BlockAt of live block %v (allocation %d) failed with %q", a, g.ID, err)
	case c.Requested != g.Request.Size || c.Size != g.Block.Size || c.Tag != g.Request.Tag || c.ID != g.Number:
		return violated(ILocated, "block %v of %d bytes has tag %d and number %d for a request of %d; BlockAt shows %+v",
			a, uint64(g.Block.Size), g.Request.Tag, g.Number, uint64(g.Request.Size), c)
	}
	for _, shown := range walk {
		if shown.Addr == a && shown.State == alloc.Live && shown != c {
			return violated(ILocated, "Walk shows %+v, BlockAt %+v", shown, c)
		}
	}
	return nil
}

// observeLocated checks invariant I74 of a live block, the last freed one, address 0, the address
// after a block, and one inside it. A strategy without power.Locator walks for each.
func (r *runner) observeLocated() error {
	if r.isRequest && r.outcome == changed {
		if err := r.judge(r.model.number(r.block.Addr, r.is.walk)); err != nil {
			return err
		}
	}
	if !r.powers.has(power.PowerLocator) && !r.thorough && r.step%sampleEvery != 0 {
		return nil
	}
	asked := [...]device.Addr{0, r.block.Addr, 0, 0, 0}
	if n := len(r.model.byAddr); n > 0 {
		b := r.model.byAddr[r.step%n].Block
		asked[2], asked[3] = b.Addr, b.Addr.Add(b.Size)
		if b.Size > 1 {
			asked[4] = b.Addr.Add(interior(uint64(r.step), b.Size))
		}
	}
	for _, a := range asked {
		c, err := power.BlockAt(r.main.Strategy, a)
		if err := r.judge(Located(r.is.walk, &r.model, a, c, err)); err != nil {
			return err
		}
	}
	return nil
}

// number notes the allocation ID that the walk shows of a block just granted. IDs ascend.
func (m *Model) number(a device.Addr, walk []alloc.Chunk) error {
	for _, c := range walk {
		if c.Addr != a || c.State != alloc.Live || c.ID == 0 {
			continue
		}
		if c.ID <= m.numbered {
			return violated(ILocated, "block %v has allocation ID %d; %d was given before", a, c.ID, m.numbered)
		}
		i, _ := m.find(a)
		m.byAddr[i].Number, m.numbered = c.ID, c.ID
	}
	return nil
}

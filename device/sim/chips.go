package sim

import "github.com/vramyard/vramyard/device"

// Chip is what a CUDA program can read of the GPU of a card, beside its memory.
type Chip struct {
	Major, Minor    int         // compute capability
	Processors      int         // multiprocessors
	Threads, Blocks int         // most of a multiprocessor
	SharedProcessor device.Size // shared memory of a multiprocessor
	SharedBlock     device.Size // shared memory of a block that asks for more than 48 KiB
	L2              device.Size // size of the L2 cache
	Bus             int         // bits of the memory bus
}

// capability is what all GPUs of a compute capability have in common, by NVIDIA's guide.
type capability struct {
	threads, blocks int
	shared          device.Size
}

// capabilities are by 10 · major + minor. A block can have all but 1 KiB of the shared memory from
// capability 8.0 on.
var capabilities = map[int]capability{
	70:  {2048, 32, 96 * device.KiB},
	75:  {1024, 16, 64 * device.KiB},
	80:  {2048, 32, 164 * device.KiB},
	86:  {1536, 16, 100 * device.KiB},
	89:  {1536, 24, 100 * device.KiB},
	90:  {2048, 32, 228 * device.KiB},
	100: {2048, 32, 228 * device.KiB},
	120: {1536, 24, 100 * device.KiB},
}

// chips are the GPUs of the cards, from the vendor's data sheets. A program chooses kernels and the
// sizes of their scratch memory by these figures.
var chips = map[string]struct {
	capability, processors int
	l2                     device.Size
	bus                    int
}{
	"b200-180g":   {100, 148, 126 * device.MiB, 8192},
	"h200-141g":   {90, 132, 50 * device.MiB, 6144},
	"h100-94g":    {90, 132, 50 * device.MiB, 6016},
	"h100-80g":    {90, 132, 50 * device.MiB, 5120},
	"a100-80g":    {80, 108, 40 * device.MiB, 5120},
	"l40s-48g":    {89, 142, 96 * device.MiB, 384},
	"a100-40g":    {80, 108, 40 * device.MiB, 5120},
	"v100-32g":    {70, 80, 6 * device.MiB, 4096},
	"rtx5090-32g": {120, 170, 96 * device.MiB, 512},
	"rtx4090-24g": {89, 128, 72 * device.MiB, 384},
	"rtx3090-24g": {86, 82, 6 * device.MiB, 384},
	"l4-24g":      {89, 58, 48 * device.MiB, 192},
	"v100-16g":    {70, 80, 6 * device.MiB, 4096},
	"t4-16g":      {75, 40, 4 * device.MiB, 256},
}

// Chip returns the GPU of the card; that of an A100 for a card that is not listed.
func (c Card) Chip() Chip {
	k, ok := chips[c.Name]
	if !ok {
		k = chips["a100-80g"]
	}
	all := capabilities[k.capability]
	block := all.shared
	if k.capability >= 80 {
		block -= device.KiB
	}
	return Chip{
		Major: k.capability / 10, Minor: k.capability % 10, Processors: k.processors,
		Threads: all.threads, Blocks: all.blocks, SharedProcessor: all.shared, SharedBlock: block, L2: k.l2, Bus: k.bus,
	}
}

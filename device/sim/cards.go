package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/nearest"
)

// Card is a real GPU that a simulated device can model.
type Card struct {
	Name      string      `json:"name"`                       // permanent name in device specifications
	Model     string      `json:"model"`                      // the vendor's name
	Memory    device.Size `json:"memory_bytes"`               // memory available to CUDA, in whole pages
	Bandwidth uint64      `json:"bandwidth_bytes_per_second"` // of its memory, as specified by the vendor
	// Link is the bandwidth to the host in each direction: 16 lanes of PCI Express of the generation
	// that the vendor specifies, after line coding.
	Link uint64 `json:"link_bytes_per_second"`
	// Capability is the major compute capability: https://developer.nvidia.com/cuda-gpus.
	Capability int `json:"compute_capability"`
	// MemorySource is the source of Memory.
	MemorySource string `json:"memory_source"`
	// BandwidthSource is the source of Bandwidth.
	BandwidthSource string `json:"bandwidth_source"`
}

// cardPage is the mapping granularity of every card, and the Config.Charge of a card.
const cardPage = 2 * device.MiB

// Sources of the cards' figures; docs/device-model.md has the details. A total is the size of
// global memory that the runtime reports: the nominal size minus the memory of the driver and error
// correction, which varies by some MiB between drivers.
const (
	pytorch     = "PyTorch"
	ultralytics = "Ultralytics"
	deviceQuery = "deviceQuery"
	sheet       = "data sheet, quoted"
	recalled    = "data sheet, recalled"
)

// Bytes per second of 16 lanes of PCI Express in one direction: transfers of a bit, less the line
// coding (128 of 130 bits, since generation 6 242 of 256 bytes).
const (
	pcie3 = 16 * 8_000_000_000 / 8 * 128 / 130
	pcie4 = 16 * 16_000_000_000 / 8 * 128 / 130
	pcie5 = 16 * 32_000_000_000 / 8 * 128 / 130
	pcie6 = 16 * 64_000_000_000 / 8 * 242 / 256
)

// mib returns n MiB, rounded down to whole pages.
func mib(n device.Size) device.Size { return device.AlignDown(n*device.MiB, cardPage) }

// cards are the cards by name. A test compares them with the table of docs/device-model.md.
var cards = []Card{
	{"b200-180g", "NVIDIA B200", mib(182642), 7672e9, pcie6, 10, pytorch, "driver"},
	{"h200-141g", "NVIDIA H200 SXM", mib(143156), 4800e9, pcie5, 9, pytorch, sheet},
	{"h100-94g", "NVIDIA H100 NVL", mib(95320), 3900e9, pcie5, 9, ultralytics, sheet},
	{"h100-80g", "NVIDIA H100 SXM", mib(81090), 3350e9, pcie5, 9, pytorch, sheet},
	{"a100-80g", "NVIDIA A100 SXM4 80GB", mib(81153), 2039e9, pcie4, 8, ultralytics, sheet},
	{"l40s-48g", "NVIDIA L40S", mib(45495), 864e9, pcie4, 8, ultralytics, recalled},
	{"a100-40g", "NVIDIA A100 SXM4 40GB", mib(40514), 1555e9, pcie4, 8, ultralytics, sheet},
	{"v100-32g", "Tesla V100 SXM2 32GB", mib(32494), 900e9, pcie3, 7, ultralytics, sheet},
	{"rtx5090-32g", "GeForce RTX 5090", mib(32117), 1792e9, pcie5, 12, deviceQuery, recalled},
	{"rtx4090-24g", "GeForce RTX 4090", mib(24210), 1008e9, pcie4, 8, ultralytics, sheet},
	{"rtx3090-24g", "GeForce RTX 3090", mib(24259), 936e9, pcie4, 8, pytorch, recalled},
	{"l4-24g", "NVIDIA L4", mib(22693), 300e9, pcie4, 8, ultralytics, sheet},
	{"v100-16g", "Tesla V100 SXM2 16GB", mib(16160), 900e9, pcie3, 7, pytorch, sheet},
	{"t4-16g", "Tesla T4", mib(15102), 320e9, pcie3, 7, pytorch, sheet},
}

// Cards returns the cards for device specifications, largest first.
func Cards() []Card { return slices.Clone(cards) }

// Config returns a simulated device with the card's memory, in whole pages, and its bandwidth.
func (c Card) Config() Config {
	return Config{Capacity: c.Memory, Charge: cardPage, Bandwidth: c.Bandwidth}
}

// CardOf returns the card whose configuration equals c in every field, and whether there is one.
func CardOf(c Config) (Card, bool) {
	c, err := c.WithDefaults()
	if err != nil {
		return Card{}, false
	}
	i := slices.IndexFunc(cards, func(k Card) bool {
		like, err := k.Config().WithDefaults()
		return err == nil && like == c
	})
	if i < 0 {
		return Card{}, false
	}
	return cards[i], true
}

// ParseDevice parses the specification of a simulated device: "sim" is the default, "sim:24GiB" the
// default with a capacity, and "sim:h100-80g" the card of that name.
func ParseDevice(spec string) (Config, error) {
	kind, what, more := strings.Cut(spec, ":")
	switch {
	case kind != "sim":
		return Config{}, fmt.Errorf("device %q: there are simulated devices only: %s", spec, wanted(spec))
	case !more:
		return Config{}.WithDefaults()
	}
	if i := slices.IndexFunc(cards, func(c Card) bool { return c.Name == what }); i >= 0 {
		return cards[i].Config().WithDefaults()
	}
	if what == "" || what[0] < '0' || what[0] > '9' { // names of cards begin with a letter
		return Config{}, fmt.Errorf("device %q: no such card: %s", spec, wanted(spec))
	}
	n, err := device.ParseCapacity(what)
	if err != nil {
		return Config{}, fmt.Errorf("device %q: %w", spec, err)
	}
	return Config{Capacity: n}.WithDefaults()
}

// wanted lists the valid specifications, with the most similar one first.
func wanted(spec string) string {
	names := make([]string, len(cards))
	for i, c := range cards {
		names[i] = c.Name
	}
	hint := ""
	if near := nearest.Name(strings.TrimPrefix(spec, "sim:"), names); near != "" {
		hint = `did you mean "sim:` + near + `"? `
	}
	return hint + "want sim, sim:SIZE such as sim:24GiB, or sim:CARD with one of " + strings.Join(names, ", ")
}

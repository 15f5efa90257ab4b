package sim

import (
	"math"
	"math/bits"

	"github.com/vramyard/vramyard/device"
)

// Cost is what one kind of call costs. Times are nanoseconds.
type Cost struct {
	Base   uint64 `json:"base_ns"`     // of every call, refused ones too
	Page   uint64 `json:"page_ns"`     // more for each page of 2 MiB that the call is about, begun ones too
	Moves  bool   `json:"moves_bytes"` // the call reads or writes every byte, at Config.Bandwidth
	Source string `json:"source"`      // where the figures are from
}

// Costs is a table of what calls cost, by kind.
type Costs [device.NumCalls]Cost

// costPage is the page of Cost.Page.
const costPage = 2 * device.MiB

// Of returns the nanoseconds that a call about size bytes takes, where memory moves bandwidth
// bytes a second. The largest time stands for all that are larger.
func (t *Costs) Of(c device.Call, size device.Size, bandwidth uint64) uint64 {
	k := &t[c]
	ns := k.Base
	if k.Page != 0 && size != 0 {
		ns = plus(ns, times(uint64((size-1)/costPage)+1, k.Page))
	}
	if k.Moves {
		ns = plus(ns, moving(size, bandwidth))
	}
	return ns
}

// times multiplies. The largest number stands for all that are larger.
func times(a, b uint64) uint64 {
	if high, low := bits.Mul64(a, b); high == 0 {
		return low
	}
	return math.MaxUint64
}

// moving returns the nanoseconds, rounded up, that size bytes take at a bandwidth.
//
// Precondition: bandwidth > 0.
func moving(size device.Size, bandwidth uint64) uint64 {
	high, low := bits.Mul64(uint64(size), 1e9)
	low, carry := bits.Add64(low, bandwidth-1, 0)
	if high += carry; high >= bandwidth {
		return math.MaxUint64
	}
	ns, _ := bits.Div64(high, low, bandwidth)
	return ns
}

// CostTable names a table of costs.
type CostTable string

// The tables of costs.
const (
	// Published is made of what others have measured and published, on several cards: orders of
	// magnitude, not a prediction for one card.
	Published CostTable = "published"
	// NoCosts lets no call take any time, so that time is only what a caller makes of it.
	NoCosts CostTable = "none"
)

// Costs returns the table of that name, and whether there is one.
func (t CostTable) Costs() (Costs, bool) {
	if table := t.table(); table != nil {
		return *table, true
	}
	return Costs{}, false
}

// table returns the table of that name, or nil.
func (t CostTable) table() *Costs {
	switch t {
	case Published:
		return &published
	case NoCosts:
		return &noCosts
	}
	for i := range measured {
		if measured[i].name == t {
			return &measured[i].costs
		}
	}
	return nil
}

// measuredCosts is a table that was measured on one card.
type measuredCosts struct {
	name  CostTable // of the result in docs/results that it is made of
	costs Costs
}

// CostTables returns the names of all tables: [Published], [NoCosts], and those that were measured
// on one card each.
func CostTables() []CostTable {
	all := []CostTable{Published, NoCosts}
	for _, m := range measured {
		all = append(all, m.name)
	}
	return all
}

var noCosts Costs

// Sources of the figures of the published table. docs/device-model.md tells of each which card,
// system and date it is about, and where it can be read.
const (
	events    = "cuda_event_benchmark"
	vmm       = "bench_vmm"
	windows   = "winrapids"
	ingero    = "ingero"
	fitted    = "fitted to GMLake"
	attention = "vAttention, recalled"
	assumed   = "assumed"
)

// published holds the figures of the table [Published]. docs/device-model.md shows the same
// table; a test compares them.
var published = Costs{
	device.CallReserve: {70_000, 520, false, "base " + windows + ", the same up to 16 MiB; page " + fitted},
	device.CallRelease: {170_000, 520, false, "base " + windows + ", the same up to 1 MiB; page " + assumed +
		" as of reserve"},
	device.CallReserveRange:  {19_000, 0, false, vmm + ", of 8 GB"},
	device.CallReleaseRange:  {19_000, 0, false, assumed + " as reserve-range"},
	device.CallCreateHandle:  {29_000, 390, false, "base " + attention + "; page " + fitted},
	device.CallReleaseHandle: {23_000, 390, false, "base " + attention + "; page " + assumed + " as of create-handle"},
	device.CallMap:           {1_450, 0, false, vmm},
	device.CallSetAccess:     {36_000, 350, false, "base " + vmm + "; page " + fitted},
	device.CallUnmap:         {25_600, 350, false, "base " + vmm + "; page " + assumed + " as of set-access"},

	device.CallNewEvent:     {422, 0, false, events},
	device.CallDestroyEvent: {119, 0, false, events},
	device.CallRecord:       {244, 0, false, events},
	device.CallDone:         {1_016, 0, false, events},
	device.CallWait:         {254, 0, false, events},
	device.CallSyncEvent:    {5_000, 0, false, assumed + " as sync-stream"},
	device.CallSyncStream:   {5_000, 0, false, ingero},
	device.CallSyncDevice:   {5_000, 0, false, assumed + " as sync-stream"},

	device.CallNewPool:          {10_000, 0, false, assumed},
	device.CallDestroyPool:      {10_000, 0, false, assumed},
	device.CallAllocAsync:       {550, 0, false, windows + ", from a pool that has the memory"},
	device.CallFreeAsync:        {500, 0, false, windows},
	device.CallTrimPool:         {2_000, 0, false, assumed},
	device.CallPoolAttribute:    {500, 0, false, assumed},
	device.CallSetPoolAttribute: {500, 0, false, assumed},

	device.CallMemoryInfo: {20_000, 0, false, assumed},
	device.CallFill:       {5_000, 0, true, "base " + assumed},
	device.CallCompare:    {10_000, 0, true, "base " + assumed},
}

// spend books the time that a call about size bytes takes by the table.
func (d *Device) spend(c device.Call, size device.Size) {
	d.take(c, d.costs.Of(c, size, d.cfg.Bandwidth))
}

// take books time of a call, in the account and on the host's clock.
func (d *Device) take(c device.Call, ns uint64) {
	d.usage.Times[c] = plus(d.usage.Times[c], ns)
	d.usage.Time = plus(d.usage.Time, ns)
	d.now = plus(d.now, ns)
}

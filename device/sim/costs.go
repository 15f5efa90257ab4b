package sim

import (
	"math"
	"math/bits"

	"github.com/vramyard/vramyard/device"
)

// Cost is the cost of one kind of call. Times are nanoseconds.
type Cost struct {
	Base   uint64 `json:"base_ns"`     // per call, including failed ones
	Page   uint64 `json:"page_ns"`     // per page of 2 MiB of the call's size, rounded up
	Moves  bool   `json:"moves_bytes"` // the call reads or writes every byte, at Config.Bandwidth
	Source string `json:"source"`      // source of the figures
}

// Costs is a table of the costs of calls, by kind.
type Costs [device.NumCalls]Cost

// costPage is the size of a page in Cost.Page.
const costPage = 2 * device.MiB

// Of returns the nanoseconds of a call on size bytes at a memory bandwidth in bytes per second. It
// saturates at the maximum.
func (t *Costs) Of(c device.Call, size device.Size, bandwidth uint64) uint64 {
	k := &t[c]
	ns := k.Base
	if k.Page != 0 && size != 0 {
		ns = addTimes(ns, multiply(uint64((size-1)/costPage)+1, k.Page))
	}
	if k.Moves {
		ns = addTimes(ns, transferTime(size, bandwidth))
	}
	return ns
}

// multiply multiplies, saturating at the maximum.
func multiply(a, b uint64) uint64 {
	if high, low := bits.Mul64(a, b); high == 0 {
		return low
	}
	return math.MaxUint64
}

// transferTime returns the nanoseconds, rounded up, to move size bytes at a bandwidth.
//
// Precondition: bandwidth > 0.
func transferTime(size device.Size, bandwidth uint64) uint64 {
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
	// Published is compiled from published measurements of several cards. It gives orders of
	// magnitude, not a prediction for one card.
	Published CostTable = "published"
	// NoCosts charges no time for calls, so that only callers advance the clock.
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

// measuredCosts is a table measured on one card.
type measuredCosts struct {
	name  CostTable // name of its result in docs/results
	costs Costs
}

// CostTables returns the names of all tables: [Published], [NoCosts], and the tables measured on
// one card each.
func CostTables() []CostTable {
	all := []CostTable{Published, NoCosts}
	for _, m := range measured {
		all = append(all, m.name)
	}
	return all
}

var noCosts Costs

// Sources of the published figures. docs/device-model.md lists the card, system, date and location
// of each.
const (
	events    = "cuda_event_benchmark"
	vmm       = "bench_vmm"
	windows   = "winrapids"
	ingero    = "ingero"
	fitted    = "fitted to GMLake"
	attention = "vAttention, recalled"
	assumed   = "assumed"
)

// published is the table [Published]. A test compares it with the table of docs/device-model.md.
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

// chargeCall charges the time of a call on size bytes according to the table.
func (d *Device) chargeCall(c device.Call, size device.Size) {
	d.addTime(c, d.costs.Of(c, size, d.cfg.Bandwidth))
}

// addTime charges time to a call, in the account and on the host's clock.
func (d *Device) addTime(c device.Call, ns uint64) {
	d.usage.Times[c] = addTimes(d.usage.Times[c], ns)
	d.usage.Time = addTimes(d.usage.Time, ns)
	d.now = addTimes(d.now, ns)
}

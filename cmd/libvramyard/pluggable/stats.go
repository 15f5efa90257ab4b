package pluggable

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/fileio"
)

// Schema names the form of [Stats].
const Schema = "vramyard-pytorch/1"

// Stats are the statistics of a process. Sizes are bytes.
type Stats struct {
	Schema   string `json:"schema"`   // [Schema]
	Version  string `json:"version"`  // of the library
	Pid      int    `json:"pid"`      // process id
	Strategy string `json:"strategy"` // name and preset
	Config   any    `json:"config"`   // settings of the strategy, before they were adapted to a GPU
	Device   string `json:"device"`   // cuda, or the simulated device
	// internal error that disabled the library; "" if none
	Error   string        `json:"error"`
	Devices []DeviceStats `json:"devices"` // GPUs that were used, by number
}

// DeviceStats are the statistics of one GPU. Sizes are bytes.
type DeviceStats struct {
	Device        int          `json:"device"`               // number of the GPU
	Total         device.Size  `json:"total_bytes"`          // capacity; 0 if unbounded
	Bound         device.Size  `json:"bound_bytes"`          // limit on the bytes held; 0 if none
	Allocs        uint64       `json:"allocs"`               // blocks granted
	Frees         uint64       `json:"frees"`                // blocks freed
	OOMs          uint64       `json:"ooms"`                 // requests that failed after the retry
	Refused       device.Size  `json:"refused_bytes"`        // bytes of the last request that failed; 0 if none
	Ladders       uint64       `json:"ladders"`              // requests that failed at first
	Zero          uint64       `json:"zero_sized"`           // requests of 0 bytes, which return null
	BadFrees      uint64       `json:"bad_frees"`            // frees of addresses that are not live
	Uses          uint64       `json:"recorded_streams"`     // calls of record_stream
	BadUses       uint64       `json:"bad_uses"`             // calls of record_stream for addresses that are not live
	Trims         uint64       `json:"empty_cache_calls"`    // calls of empty_cache
	Live          int          `json:"live_blocks"`          // live blocks
	Requested     device.Size  `json:"requested_bytes"`      // bytes requested by live blocks
	Allocated     device.Size  `json:"allocated_bytes"`      // bytes granted to live blocks
	Active        device.Size  `json:"active_bytes"`         // bytes granted to live and pending blocks
	Reserved      device.Size  `json:"reserved_bytes"`       // bytes held from the GPU
	PeakRequested device.Size  `json:"peak_requested_bytes"` // peak of Requested
	PeakAllocated device.Size  `json:"peak_allocated_bytes"` // peak of Allocated
	PeakActive    device.Size  `json:"peak_active_bytes"`    // peak of Active
	PeakReserved  device.Size  `json:"peak_reserved_bytes"`  // peak of Reserved
	LargestHole   device.Size  `json:"largest_hole_bytes"`   // largest free chunk
	Calls         uint64       `json:"device_calls"`         // driver calls
	Waits         uint64       `json:"stream_waits"`         // driver calls that made a stream wait for another
	TraceEvents   int          `json:"trace_events"`         // events recorded
	Poison        *PoisonStats `json:"poison,omitempty"`     // with VRAMYARD_POISON
	// counters as in torch.cuda.memory_stats, if the strategy has them
	Counters map[string]int64 `json:"counters,omitempty"`
}

// Stats returns the present statistics. The error is an error in the environment.
func (l *Library) Stats() (s Stats, err error) {
	defer l.survive(&err)
	s = Stats{Schema: Schema, Version: Version, Pid: l.host.Pid, Devices: []DeviceStats{}}
	if e := l.prepare(); l.wrong != nil {
		return s, e
	}
	if e := l.broken.Load(); e != nil {
		s.Error = (*e).Error()
	}
	s.Strategy, s.Config, s.Device = l.conf.setup.Name, l.conf.setup.Config, l.conf.device
	for _, n := range l.made() {
		n.mu.Lock()
		s.Devices = append(s.Devices, n.stats())
		n.mu.Unlock()
	}
	return s, nil
}

func (n *instance) stats() DeviceStats {
	s, c, u := n.strategy.Stats(), &n.count, n.dev.Usage()
	d := DeviceStats{
		Device: n.ordinal, Total: n.total, Bound: n.dev.most,
		Allocs: s.Allocs, Frees: s.Frees, OOMs: c.ooms, Refused: c.refused,
		Ladders: c.ladders, Zero: c.zero, BadFrees: c.badFrees,
		Uses: c.uses, BadUses: c.badUses, Trims: c.trims, Live: s.Live,
		Requested: s.Requested, Allocated: s.Allocated, Active: s.Active, Reserved: s.Reserved,
		PeakRequested: s.PeakRequested, PeakAllocated: s.PeakAllocated, PeakActive: s.PeakActive,
		PeakReserved: s.PeakReserved, LargestHole: power.LargestFree(n.strategy),
		Calls: u.Calls.Total(), Waits: u.Calls[device.CallWait].Done,
	}
	if n.rec != nil {
		d.TraceEvents = n.rec.count
	}
	if n.poison != nil {
		report := n.poison.report
		d.Poison = &report
	}
	_ = power.Counters(n.strategy, func(name string, v int64) bool { // no counters without the power
		if d.Counters == nil {
			d.Counters = map[string]int64{}
		}
		d.Counters[name] = v
		return true
	})
	return d
}

// StatsJSON returns the statistics as JSON, including an error in the environment.
func (l *Library) StatsJSON() []byte {
	s, err := l.Stats()
	if err != nil {
		s.Error = err.Error()
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		text = fmt.Appendf(nil, "{\"schema\":%q,\"error\":%q}", Schema, err)
	}
	return append(text, '\n')
}

// writeStats writes the statistics to a file, atomically.
func (l *Library) writeStats(path string) error {
	err := fileio.Write(path, io.Discard, func(w io.Writer) error {
		_, err := w.Write(l.StatsJSON())
		return err
	})
	if err != nil {
		err = fmt.Errorf("vramyard: %w", err)
	}
	return err
}

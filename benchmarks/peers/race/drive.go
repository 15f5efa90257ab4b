package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/benchmarks/peers/memutils"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/bench"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/strategies"
)

// reply is the output of a driver; doc.go describes the fields.
type reply struct {
	About     string        `json:"about"`
	Hash      workload.Hash `json:"hash"`
	NS        int64         `json:"ns"`
	Heap      device.Size   `json:"heap_bytes"`
	ByAddress bool          `json:"by_address"`
}

// catalogue returns the strategies that this program drives itself.
func catalogue() setting.Catalogue { return append(strategies.All(), memutils.Spec()) }

// byReference ends the name of a strategy that frees blocks by reference.
const byReference = "*"

// drive is a driver for the strategies of the catalogue, on a device as large as the range.
func drive(name, file, placements string) (r reply, err error) {
	name, byRef := strings.CutSuffix(name, byReference)
	s, err := catalogue().Lookup(name, nil)
	if err != nil {
		return r, err
	}
	o, err := readOperations(file)
	if err != nil {
		return r, err
	}
	r = reply{About: "vramyard, " + runtime.Version(), Hash: o.hash(), ByAddress: !byRef}
	if strings.HasPrefix(name, memutils.Name) {
		r.About, r.ByAddress = memutils.About+", "+runtime.Version(), false
	}
	k := bench.Candidate{Name: name, Device: replay.SimTarget(sim.Config{Capacity: o.span}),
		New: s.ForCapacity(o.span).New, ByRef: byRef}
	if placements != "" {
		return r, writePlacements(o, k, placements)
	}
	r.NS, r.Heap, err = timed(o, k)
	return r, err
}

// timed runs the operations and returns the time of the churn and the growth of the heap.
func timed(o operations, k bench.Candidate) (ns int64, grown device.Size, err error) {
	p := &workload.Program{Fill: o.untimed, Churn: o.churn}
	p.Summary.Slots = o.slots
	for _, op := range o.churn {
		if !op.IsFree() {
			p.Summary.Pairs++
		}
	}
	load := bench.NewWorkload(p, workload.MaxSize)
	before := heap()
	pass, err := load.Prepare(k)
	if err != nil {
		return 0, 0, err
	}
	after := heap()
	if ns, _, err = pass.Churn(load.Pairs); err != nil {
		return 0, 0, err
	}
	if len(o.untimed) == 0 {
		after = heap()
	}
	return ns, after - min(before, after), pass.Close()
}

// writePlacements runs all operations and writes where each block lies.
func writePlacements(o operations, k bench.Candidate, file string) error {
	dev, err := k.Device.Open()
	if err != nil {
		return err
	}
	s, err := k.New(dev)
	if err != nil {
		return err
	}
	addrOf := func(a device.Addr) device.Addr { return a }
	if n, ok := s.(bench.Named); ok {
		addrOf = n.AddrOf
	}
	free := func(b alloc.Block) error { return s.Free(b.Addr) }
	if k.ByRef {
		refs, ok := power.ReferencedOf(s)
		if !ok {
			return fmt.Errorf("%s frees by address only: want the name without %s", k.Name, byReference)
		}
		free = refs.FreeRef
	}
	live := make([]alloc.Block, o.slots)
	var out []byte
	err = o.each(func(_ int, op workload.Op) error {
		if op.IsFree() {
			return free(live[op.Slot()])
		}
		b, err := s.Alloc(alloc.Request{Size: op.Size()})
		live[op.Slot()] = b
		if err == nil {
			out = binary.LittleEndian.AppendUint64(out, uint64(addrOf(b.Addr).Sub(sim.Base)))
		}
		return err
	})
	if err != nil {
		return err
	}
	return os.WriteFile(file, out, 0o600)
}

// heap returns the bytes of the Go heap that are in use.
func heap() device.Size {
	var m runtime.MemStats
	runtime.GC() // a sync.Pool is emptied by the second collection
	runtime.GC()
	runtime.ReadMemStats(&m)
	return device.Size(m.HeapAlloc)
}

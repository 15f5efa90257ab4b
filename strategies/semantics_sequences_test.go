package strategies_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/harness/trace/vectors"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// sequence is a column of testdata/semantics.txt: traces with their devices, under one name.
type sequence struct {
	name  string
	hash  string // of all that a strategy is given
	parts []part
}

// replays reports whether the digest of a row in the sequence is in the file. The long sequence is
// for strategies that expect a repetition, and a setting is not replayed in all of them.
func (s sequence) replays(r semanticsRow) bool {
	expects := slices.Contains([]string{"recall", "stalloc", "pgmo", "compiler"}, r.spec)
	switch s.name {
	case "edges", "mixed":
		return true
	case "steps":
		return expects || !r.setting
	case "periods":
		return expects && !r.setting
	}
	return !r.setting
}

// part is a trace and its device. Planners get the calls of another trace as their forecast, if
// there is one.
type part struct {
	trace    *replay.Prepared
	device   sim.Config
	forecast power.Forecast
}

// sequences returns the columns. They are the same on every machine: files of the repository, and
// sequences whose random numbers Go defines for ever.
func sequences() (all []sequence, err error) {
	add := func(name string, parts []given, failed error) {
		if err == nil {
			err = failed
		}
		if err != nil {
			return
		}
		var s sequence
		if s, err = sequenceOf(name, parts); err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, s)
	}
	parts, failed := ofVectors("bfc/s03_bin_edges", "bfc/s04_zero_byte", "bfc/v01_alignment",
		"bfc/s13_timestamped", "bfc/s11_gc", "bfc/s10_backpedal", "bfc/s20_growth_fragmented",
		"buddy/A_edge", "slab/A_thresholds", "slab_buddy/B_oom_tight", "rmm_pool/edges", "rmm_pool/oom")
	add("edges", parts, failed)
	parts, failed = ofVectors("rmm_arena/streams_small", "torch_2.6/multi_stream", "torch_2.6/micro_record_stream",
		"torch_2.6/expandable_multi_stream_oom")
	add("streams", parts, failed)
	parts, failed = ofVectors("torch_2.6/captures_oom", "torch_2.6/mempools", "torch_2.6/nested_pools_oom",
		"bfc/v03_spatial", "bfc/s16_topdown_gc")
	add("pools", parts, failed)
	parts, failed = ofIncidents("beside-nccl", "keep-one", "vary-lengths", "wait-for-stream", "capture-ascending")
	add("incidents", parts, failed)
	parts, failed = beginnings()
	add("recorded", parts, failed)
	parts, failed = orders()
	add("orders", parts, failed)
	parts, failed = mixed()
	add("mixed", parts, failed)
	parts, failed = churns()
	add("churn", parts, failed)
	parts, failed = steps()
	add("steps", parts, failed)
	parts, failed = periods()
	add("periods", parts, failed)
	return all, err
}

// given is a part before it is prepared.
type given struct {
	trace, learned *trace.Trace // learned may be nil
	device         sim.Config
}

// sequenceOf prepares the parts of a sequence, and hashes their events and devices.
func sequenceOf(name string, parts []given) (s sequence, err error) {
	s.name = name
	h := sha256.New()
	for _, g := range parts {
		p := part{device: g.device}
		if p.trace, err = replay.Prepare(context.Background(), g.trace); err != nil {
			return s, err
		}
		fmt.Fprintf(h, "%d %+v\n", compare.Engine, g.device)
		if err := trace.Write(h, g.trace); err != nil {
			return s, err
		}
		if g.learned != nil {
			if p.forecast, err = replay.ForecastOf(g.learned); err != nil {
				return s, err
			}
			if err := trace.Write(h, g.learned); err != nil {
				return s, err
			}
		}
		s.parts = append(s.parts, p)
	}
	s.hash = short(h.Sum(nil))
	return s, nil
}

// short returns the first 32 bits of a hash, in hexadecimal.
func short(sum []byte) string { return hex.EncodeToString(sum[:4]) }

// ofVectors returns golden traces with the devices of their originals.
func ofVectors(ids ...string) (parts []given, err error) {
	all, err := vectors.All()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		i := slices.IndexFunc(all, func(v vectors.Vector) bool { return v.ID() == id })
		if i < 0 {
			return nil, fmt.Errorf("no vector %s", id)
		}
		t, err := all[i].Trace()
		if err != nil {
			return nil, err
		}
		device, err := sim.ParseConfig(all[i].Sim)
		if err != nil {
			return nil, err
		}
		parts = append(parts, given{trace: t, device: device})
	}
	return parts, nil
}

// ofIncidents returns traces of examples/incidents, each with the memory of its report.
func ofIncidents(names ...string) (parts []given, err error) {
	for _, name := range names {
		t, err := formats.Open(filepath.Join("..", "examples", "incidents", name+".trace.gz"), formats.Options{})
		if err != nil {
			return nil, err
		}
		limit, _ := t.Header.Get("recorded_capacity")
		n, err := strconv.ParseUint(limit, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: limit: %w", name, err)
		}
		parts = append(parts, given{trace: t, device: sim.Config{Capacity: device.Size(n)}})
	}
	return parts, nil
}

// beginnings returns the first events of recorded traces, with room and in too little memory.
func beginnings() (parts []given, err error) {
	for _, r := range []struct {
		name     string
		events   int
		capacity device.Size
	}{
		{"cpu_unet_train", 3000, 4 * device.GiB},
		{"cpu_unet_train", 2000, 420 * device.MiB},
		{"meta_moe_ep_train", 3000, 44 * device.GiB},
		{"cpu_gpt2_train_varlen", 2000, 2 * device.GiB},
	} {
		t, err := workload.OpenRecording(r.name)
		if err != nil {
			return nil, err
		}
		t.Events = t.Events[:r.events]
		parts = append(parts, given{trace: t, device: sim.Config{Capacity: r.capacity}})
	}
	return parts, nil
}

// orders frees five blocks in each of the 120 orders. A request after the third free shows the
// choice among the holes; a block that stays keeps the memory of some orders apart.
func orders() (parts []given, err error) {
	for _, sizes := range [][]device.Size{
		{1000, 512, 3000, 513, 1000, 700},
		{3 * device.MiB, 9 * device.MiB, 2*device.MiB + 1, 3 * device.MiB, 21 * device.MiB, 2 * device.MiB},
	} {
		b := trace.NewBuilder(trace.Header{Name: "orders"})
		var id uint64
		for _, order := range permutations(5) {
			first := id
			for i := range order {
				err = b.Alloc(first+uint64(i), sizes[i], 0)
			}
			id += uint64(len(order))
			for i, freed := range order {
				if err == nil {
					err = b.Free(first + uint64(freed))
				}
				if i == 2 && err == nil {
					err = b.AllocRequest(id, alloc.Request{Size: sizes[5], Align: device.Size(256) << (order[0] * 3)}, "")
				}
			}
			if order[4] != 0 && err == nil { // otherwise the probe stays
				err = b.Free(id)
			}
			id++
		}
		if err != nil {
			return nil, err
		}
		parts = append(parts, given{trace: b.Trace(), device: sim.Config{Capacity: 2 * device.GiB}})
	}
	return parts, nil
}

// permutations returns the orders of 0 to n-1, in lexical order.
func permutations(n int) (all [][]int) {
	if n == 0 {
		return [][]int{nil}
	}
	for _, shorter := range permutations(n - 1) {
		for i := range n {
			all = append(all, slices.Insert(slices.Clone(shorter), i, n-1))
		}
	}
	slices.SortFunc(all, slices.Compare[[]int])
	return all
}

// mixedEvents is the number of random events in each part of "mixed".
const mixedEvents = 1500

// mixed returns random events of every kind that a strategy may see, on a device with room and on
// one without, whose calls fail now and then.
func mixed() (parts []given, err error) {
	for i, capacity := range []device.Size{2 * device.GiB, 160 * device.MiB} {
		m := mixer{rng: rand.New(rand.NewPCG(31, uint64(i))), b: trace.NewBuilder(trace.Header{Name: "mixed"})}
		for range mixedEvents {
			if err := m.b.Add(m.next()); err != nil {
				return nil, err
			}
		}
		parts = append(parts, given{trace: m.b.Trace(), device: sim.Config{Capacity: capacity}})
	}
	return parts, nil
}

// confs are the settings that the program changes to.
var confs = []string{"", "max_split_size_mb:32", "roundup_power2_divisions:4", "expandable_segments:True"}

// mixer draws events.
type mixer struct {
	rng   *rand.Rand
	b     *trace.Builder
	id    uint64   // of the next allocation
	live  []uint64 // ids
	pool  uint64   // that requests go to, or 0
	pools uint64   // so far
}

// next draws an event: mostly requests and frees, around 60 live blocks.
func (m *mixer) next() trace.Event {
	e := trace.Event{Time: trace.NoTime}
	switch n := m.rng.IntN(100); {
	case n < 4 && len(m.live) > 0:
		e.Kind, e.ID, e.Stream = trace.Use, m.live[m.rng.IntN(len(m.live))], device.Stream(m.rng.IntN(3))
	case n < 7:
		e.Kind, e.Stream = trace.Drain, device.Stream(m.rng.IntN(3))
	case n < 9:
		e.Kind = trace.Poll
	case n < 10:
		e.Kind = [...]trace.Kind{trace.Trim, trace.Fault, trace.Conf}[m.rng.IntN(3)]
		switch e.Kind {
		case trace.Fault:
			e.Arg = 1
		case trace.Conf:
			e.Tag = m.b.Tag(confs[m.rng.IntN(len(confs))])
		}
	case n < 11 && m.pool == 0:
		m.pools++
		m.pool = m.pools
		e.Kind, e.Arg, e.Stream = trace.PoolBegin, m.pool, device.Stream(m.rng.IntN(2))
	case n < 14 && m.pool != 0:
		e.Kind, e.Arg, m.pool = trace.PoolEnd, m.pool, 0
	case len(m.live) == 0 || m.rng.IntN(120) >= len(m.live):
		m.request(&e)
	default:
		i := m.rng.IntN(len(m.live))
		e.Kind, e.ID = trace.Free, m.live[i]
		m.live = slices.Delete(m.live, i, i+1)
	}
	return e
}

// request draws a request, with a size at or beside a power of two, or anywhere.
func (m *mixer) request(e *trace.Event) {
	e.Kind, e.ID, e.Thread = trace.Alloc, m.id, uint32(1+m.rng.IntN(4))
	switch m.rng.IntN(3) {
	case 0:
		e.Size = device.Size(m.rng.IntN(4 << 20))
	case 1:
		e.Size = device.Size(1)<<m.rng.IntN(25) + device.Size(m.rng.IntN(3)) - 1
	default:
		e.Size = device.Size(1+m.rng.IntN(40)) * device.MiB / 2
	}
	if m.rng.IntN(8) == 0 {
		e.Align = 1 << m.rng.IntN(17)
	}
	if m.rng.IntN(4) == 0 {
		e.Stream = device.Stream(m.rng.IntN(3))
	}
	e.Hint = [...]alloc.Hint{0, 0, 0, alloc.HintLow, alloc.HintHigh}[m.rng.IntN(5)]
	m.live = append(m.live, m.id)
	m.id++
}

// churns returns short standard workloads, with room and in too little memory.
func churns() (parts []given, err error) {
	for _, w := range []struct {
		name     string
		params   workload.Params
		capacity device.Size
	}{
		{"w1", workload.Params{Seed: 1, Live: 100, Pairs: 600}, 4 * device.GiB},
		{"w1", workload.Params{Seed: 2, Live: 200, Pairs: 600}, 64 * device.MiB},
		{"w3", workload.Params{Seed: 3, Pairs: 400}, 2 * device.GiB},
		{"loguniform", workload.Params{Seed: 4, Live: 60, Pairs: 500, Least: 256, Most: 32 * device.MiB}, 192 * device.MiB},
	} {
		t, err := generated(w.name, w.params)
		if err != nil {
			return nil, err
		}
		parts = append(parts, given{trace: t, device: sim.Config{Capacity: w.capacity}})
	}
	return parts, nil
}

func generated(name string, p workload.Params) (*trace.Trace, error) {
	shape, err := workload.Lookup(name)
	if err != nil {
		return nil, err
	}
	w, err := shape.New(p)
	if err != nil {
		return nil, err
	}
	return w.Trace()
}

// steps returns training steps, alone and with a forecast: of the same run, and of one that the run
// departs from.
func steps() (parts []given, err error) {
	b := trace.NewBuilder(trace.Header{Name: "steps"})
	rng := rand.New(rand.NewPCG(31, 5))
	var sizes [24]device.Size // of activations, and of what a layer frees at once
	for i := range sizes {
		sizes[i] = device.Size(1+rng.IntN(96)) * 384 * device.KiB
	}
	var id uint64
	request := func(size device.Size) uint64 {
		id++
		if err == nil {
			err = b.Alloc(id, size, 0)
		}
		return id
	}
	free := func(id uint64) {
		if err == nil {
			err = b.Free(id)
		}
	}
	for range 12 {
		request(9 * device.MiB) // weights
	}
	for step := range 9 {
		if err == nil {
			err = b.Mark(fmt.Sprintf("step %d", step))
		}
		var kept []uint64
		for i, size := range sizes {
			kept = append(kept, request(size))
			free(request(sizes[len(sizes)-1-i] + 4096))
		}
		for i, k := range slices.Backward(kept) {
			gradient := request(sizes[i] / 2)
			free(k)
			free(gradient)
		}
	}
	if err != nil {
		return nil, err
	}
	t := b.Trace()
	other, err := workload.Perturb(t, workload.Perturbation{Drop: 0.02, Insert: 0.02, Resize: 0.05, Seed: 6})
	if err != nil {
		return nil, err
	}
	room := sim.Config{Capacity: 4 * device.GiB}
	return []given{
		{trace: t, device: room},
		{trace: t, learned: t, device: room},
		{trace: other, learned: t, device: room},
		{trace: other, learned: t, device: sim.Config{Capacity: 640 * device.MiB}},
	}, nil
}

// periods returns longer training runs, whose steps differ a little, with room and without, for
// strategies that expect a repetition.
func periods() (parts []given, err error) {
	t, err := generated("w2", workload.Params{Seed: 7, Steps: 5})
	if err != nil {
		return nil, err
	}
	for i, capacity := range []device.Size{64 * device.GiB, 27 * device.GiB} {
		p := workload.Perturbation{Drop: 0.001, Insert: 0.001, Resize: 0.004, Swap: 0.01, Eval: 40, Seed: uint64(i)}
		run, err := workload.Perturb(t, p)
		if err != nil {
			return nil, err
		}
		device := sim.Config{Capacity: capacity}
		parts = append(parts, given{trace: run, device: device}, given{trace: run, learned: t, device: device})
	}
	return parts, nil
}

package main

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/examples/internal/requests"
	"github.com/vramyard/vramyard/harness/trace"
)

// convertWeights converts the two expert weights of each layer, then allocates the key-value cache.
// 530, 270 and 260 MiB, and the mechanism, are from the report: the smaller tensor lands in a block
// that the larger one left, and the remainder serves neither. The 36 layers are those of GPT-OSS
// 120B. The size of the cache is our choice.
func convertWeights(m *requests.Maker) {
	const (
		layers = 36
		w13    = 530 * device.MiB
		w2     = 270 * device.MiB
		cache  = 1200 * device.MiB // of a layer
	)
	m.Mark("load")
	for range layers {
		raw := m.Alloc(w13, "w13 as loaded")
		m.Alloc(w13, "convert_layout(w13)")
		m.Free(raw)
		m.Alloc(w2, "convert_layout(w2)")
	}
	m.Mark("serve")
	for range layers {
		m.Alloc(cache, "kv_cache")
	}
}

// resumeRun restores a checkpoint and runs a step. From the report: a step gathers 14.30 GiB, and a
// resumed process finds no hole of that size although most of the memory is free. The four arrays
// that are restored in full before a shard of each is kept are our choice.
func resumeRun(m *requests.Maker) {
	const (
		arrays = 4
		whole  = 13 * device.GiB
		shard  = 900 * device.MiB
		gather = 14643 * device.MiB // 14.30 GiB
		steps  = 3
	)
	m.Mark("restore")
	var restored []requests.Tensor
	for range arrays {
		restored = append(restored, m.Alloc(whole, "tensorstore.read"))
		m.Alloc(shard, "shard")
	}
	m.Free(restored...)
	for step := range steps {
		m.Mark("step %d", step)
		m.Free(m.Alloc(gather, "all_gather"))
	}
}

// inPool sends the requests of f to private pool 1: those of one stream, as while a graph is
// captured, or those of all, as inside torch.cuda.use_mem_pool.
func inPool(m *requests.Maker, stream device.Stream, f func()) {
	m.Add(trace.Event{Kind: trace.PoolBegin, Arg: 1, Stream: stream})
	f()
	m.Add(trace.Event{Kind: trace.PoolEnd, Arg: 1})
}

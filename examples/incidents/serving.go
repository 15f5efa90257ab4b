package main

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/examples/internal/requests"
)

// prefillLong answers one long prompt in chunks. The gathered keys and the logits of the indexer
// grow with the context; the logits are freed first, and keys of later chunks lie in their blocks.
// 3.95 GiB for the last logits and the card are from the report, where 3.95 GiB are free and 4.91
// GiB reserved but not allocated. The other sizes are our choice.
func prefillLong(m *requests.Maker) {
	const (
		static = 168 * device.GiB
		chunks = 5
		logits = 809 * device.MiB // for the context of one chunk; five take 3.95 GiB
	)
	keys := []device.Size{20 * device.MiB, 165 * device.MiB, 220 * device.MiB, 330 * device.MiB}
	m.Mark("start")
	m.Alloc(static, "weights and kv_cache")
	for chunk := device.Size(1); chunk <= chunks; chunk++ {
		m.Mark("chunk %d", uint64(chunk))
		var gathered []requests.Tensor
		for _, size := range keys {
			gathered = append(gathered, m.Alloc(chunk*size, "gathered keys"))
		}
		m.Free(m.Alloc(chunk*logits, "fp8_mqa_logits"))
		m.Free(gathered...)
	}
}

// capture captures a graph for each batch size in the given order. A captured graph keeps its
// output and frees its intermediate tensors for the next capture in the pool. That ascending sizes
// leave the sum of all of them in the pool, and descending ones the largest, is from the report;
// the model and the sizes are our choice.
func capture(m *requests.Maker, sizes []device.Size) {
	const (
		static   = 72 * device.GiB
		sequence = 128 * device.KiB // of an intermediate tensor, for each sequence of the batch
		tensors  = 40
		output   = 16 * device.KiB
	)
	m.Mark("start")
	m.Alloc(static, "weights and kv_cache")
	for _, batch := range sizes {
		inPool(m, 1, func() {
			m.Mark("capture %d", uint64(batch))
			var hidden []requests.Tensor
			for range tensors {
				hidden = append(hidden, m.AllocOn(1, batch*sequence, "hidden"))
			}
			m.AllocOn(1, batch*output, "output")
			m.Free(hidden...)
		})
	}
}

// batches returns the batch sizes that are captured, the smallest first.
func batches() []device.Size {
	all := []device.Size{1, 2, 4}
	for n := device.Size(8); n <= 256; n += 8 {
		all = append(all, n)
	}
	return all
}

// captureAscending captures the smallest batch first.
func captureAscending(m *requests.Maker) { capture(m, batches()) }

// expandTokens profiles a mixture of experts, keeps the static inputs of its graphs, and expands
// the tokens again. From the report: the combined tokens find no memory although enough is free,
// before the key-value cache exists, on a card of 80 GB whose buffers RDMA has registered. The
// sizes are our choice.
func expandTokens(m *requests.Maker) {
	const (
		weights = 60 * device.GiB
		tokens  = 5 * device.GiB
		inputs  = 24 * device.MiB
		graphs  = 16
	)
	m.Mark("start")
	m.Alloc(weights, "weights")
	for _, phase := range []string{"profile", "warm up"} {
		m.Mark("%s", phase)
		expanded, combined := m.Alloc(tokens, "dispatch"), m.Alloc(tokens, "combine")
		m.Free(expanded, combined)
		for range graphs {
			m.Alloc(inputs, "static inputs")
		}
	}
}

// growBatch trains with a larger batch. From the report: a batch of 1152 has a peak of 153.1 GiB,
// JAX's share of three quarters is 138.22 GiB of that card, and a share of 0.88 is enough. How the
// peak is divided is our choice.
func growBatch(m *requests.Maker) {
	const (
		layers    = 48
		parameter = 820 * device.MiB // of a layer, with the optimizer
		temporary = 117413 * device.MiB
		steps     = 3
	)
	m.Mark("init")
	for range layers {
		m.Alloc(parameter, "parameters and optimizer")
	}
	for step := range steps {
		m.Mark("step %d", step)
		m.Free(m.Alloc(temporary, "temporary buffers"))
	}
}

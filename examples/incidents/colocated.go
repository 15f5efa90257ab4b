package main

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/examples/internal/requests"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// reloadOptimizer offloads the optimizer after a step and loads it again in the next one, whose
// forward pass lies in the optimizer's old segment, because its experts got more tokens. 18.91 GiB
// requested, 124.24 GiB allocated and 15.50 GiB reserved but not allocated are from the report; the
// sizes of the tensors are our choice.
func reloadOptimizer(m *requests.Maker) {
	const (
		static    = 123728 * device.MiB // 120.83 GiB
		optimizer = 19364 * device.MiB  // 18.91 GiB
		tensors   = 7
	)
	m.Alloc(static, "model and gradients")
	for step, size := range []device.Size{370 * device.MiB, 499 * device.MiB, 450 * device.MiB} {
		m.Mark("step %d", step)
		var forward []requests.Tensor
		for range tensors {
			forward = append(forward, m.Alloc(size, "forward"))
		}
		reloaded := m.Alloc(optimizer, "reload_from_cpu")
		m.Free(forward...)
		m.Free(reloaded)
	}
}

// keepRouting trains on answers of different length. The dispatcher of each layer keeps its routing
// until its next forward pass, beside activations in the blocks of the step before. The retained
// tensors and the failure after the first step are from the report; the sizes are our choice.
func keepRouting(m *requests.Maker) {
	const (
		static = 60 * device.GiB
		layers = 20
		parts  = 16   // tensors that a layer saves, one for each of its experts
		hidden = 2304 // bytes of a token in one of them
		kept   = 86   // bytes of a token in the routing of one of them
	)
	m.Alloc(static, "model, gradients and optimizer")
	var routing []requests.Tensor
	for step, tokens := range []device.Size{26000, 24600, 28800} {
		m.Mark("step %d: %d tokens", step, uint64(tokens))
		var saved, old []requests.Tensor
		old, routing = routing, nil
		for range layers * parts {
			saved = append(saved, m.Alloc(tokens*hidden, "saved for backward"))
			routing = append(routing, m.Alloc(tokens*kept, "routing_map"))
		}
		m.Free(old...)
		m.Free(saved...)
	}
}

// leaveResidue lets an engine sleep while a trainer runs, on one card. The memory that the engine
// keeps, 4.11 GiB at first, 11.57 and 25.0 GiB after steps, is from the report. The trainer's 58
// GiB are our choice.
func leaveResidue(m *requests.Maker) {
	const (
		layers = 29
		train  = 2 * device.GiB // of a layer
		engine = 43 * device.GiB
	)
	residue := []device.Size{4209 * device.MiB, 7639 * device.MiB, 13752 * device.MiB}
	for step, more := range residue {
		m.Mark("generate %d", step)
		awake := m.Alloc(engine, "weights and kv_cache")
		m.Alloc(more, "outside of the pool")
		m.Free(awake)
		m.Mark("train %d", step)
		var trainer []requests.Tensor
		for range layers {
			trainer = append(trainer, m.Alloc(train, "train"))
		}
		m.Free(trainer...)
	}
}

// besideNCCL trains on sequences of different length until the cache of PyTorch has taken the card,
// then NCCL allocates its buffers. From the report: about 113 GiB reserved and 57 GiB allocated,
// and NCCL finds no memory, because PyTorch does not release its cache for others. The card is what
// those leave. NCCL's buffers are requests in a private pool here, for which PyTorch does not
// release its cache either. The sizes are our choice.
func besideNCCL(m *requests.Maker) {
	const (
		static = 49 * device.GiB
		layers = 16
		hidden = 96 * device.KiB // of a token in the tensors that a layer saves
		steps  = 12
		buffer = 256 * device.MiB
		rings  = 12
	)
	r := workload.NewRand(seed)
	m.Alloc(static, "model")
	for step := range steps {
		tokens := device.Size(1250 + 400*step + int(r.Below(400)))
		m.Mark("step %d: %d tokens", step, uint64(tokens))
		var saved []requests.Tensor
		for range layers {
			saved = append(saved, m.Alloc(tokens*hidden, "saved for backward"))
		}
		m.Free(saved...)
	}
	allocateOutside(m, rings, buffer)
}

// allocateOutside allocates buffers as a library does that shares the card with PyTorch: requests
// in a private pool do not release PyTorch's cache either.
func allocateOutside(m *requests.Maker, count int, size device.Size) {
	m.Mark("ncclCommInitRank")
	inPool(m, trace.AllStreams, func() {
		for range count {
			m.Alloc(size, "ncclCudaMalloc")
		}
	})
}

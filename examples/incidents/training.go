package main

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/examples/internal/requests"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// seed of all random numbers.
const seed = 9

// copyMasters captures graphs after two iterations, and copies the master weights into the model in
// the third. From the report: the copy finds no contiguous block after the capture. The optimizer
// states of the first step lie in blocks that activations left, so the graphs need new memory for
// theirs. The sizes are our choice.
func copyMasters(m *requests.Maker) {
	const (
		layers     = 28
		weights    = 256 * device.MiB // of a layer
		state      = 2 * weights
		states     = 3
		activation = 700 * device.MiB
	)
	for range layers {
		m.Alloc(weights, "weights")
	}
	for iteration := range 2 {
		m.Mark("iteration %d", iteration)
		var saved []requests.Tensor
		for range layers {
			saved = append(saved, m.Alloc(activation, "activation"))
		}
		m.Free(saved...)
		for range layers * states {
			if iteration == 0 {
				m.Alloc(state, "optimizer.step")
			}
		}
	}
	m.Mark("capture")
	m.Add(trace.Event{Kind: trace.Trim})
	inPool(m, 1, func() {
		for range layers {
			m.AllocOn(1, activation, "activation")
		}
	})
	m.Mark("iteration 2")
	m.Alloc(layers*weights, "_copy_main_params_to_model_params")
}

// secondStep requests a large tensor in each iteration. From the report: its 11643387904 bytes, the
// smaller tensors that lie in its segment when it is requested again, 643.7 MiB before it, and the
// card, where 10.26 GiB are free and 12.53 GiB reserved. How the reserved memory beside the large
// segment is divided is our choice.
func secondStep(m *requests.Maker) {
	const (
		model  = 101 // tensors of the model, each in a block of 12 MiB
		weight = 659155 * device.KiB / model
		block  = 12 * device.MiB
		large  = 11643387904
		inside = 499214336 // bytes of the smaller ones
	)
	sizes := []device.Size{16515072, 16515072, 11400192, 18191360}
	for range model {
		m.Free(m.Alloc(block, "as loaded"))
		m.Alloc(weight, "model")
	}
	for step := range 2 {
		m.Mark("iteration %d", step)
		var list []requests.Tensor
		var sum device.Size
		for i := 0; step > 0 && sum+sizes[i%len(sizes)] <= inside; i++ {
			sum += sizes[i%len(sizes)]
			list = append(list, m.Alloc(sizes[i%len(sizes)], "activation"))
		}
		m.Free(m.Alloc(large, "large"))
		m.Free(list...)
	}
}

// keepOne allocates A and B and a small block that stays, then frees A and B. The sizes, the order,
// the number of cycles and the card are from the report, where the memory that PyTorch reserves
// grows until the card is full. That others need 12 GiB of the card then is our addition.
func keepOne(m *requests.Maker) {
	const (
		a      = 91 * device.MiB
		b      = a / 2
		stays  = 2 * device.MiB
		cycles = 101
	)
	m.Alloc(64*device.MiB, "model")
	for cycle := range cycles {
		m.Mark("cycle %d", cycle)
		first, second := m.Alloc(a, "A"), m.Alloc(b, "B")
		m.Alloc(stays, "stays")
		m.Free(first, second)
	}
	allocateOutside(m, 12, device.GiB)
}

// waitForStream frees a tensor that another stream still uses, on a full card, and requests one of
// the same size. From the report: the block is free once the allocator has waited for the stream,
// but the allocator only asks the device again. The sizes are our choice.
func waitForStream(m *requests.Maker) {
	const (
		tensors = 30
		tensor  = device.GiB
	)
	var list []requests.Tensor
	for range tensors {
		m.Free(m.Alloc(2*tensor, "as loaded"))
		list = append(list, m.Alloc(tensor, "parameter"), m.Alloc(tensor, "gathered"))
	}
	m.Mark("step")
	gathered := list[1]
	m.Add(trace.Event{Kind: trace.Use, ID: uint64(gathered), Stream: 1})
	m.Free(gathered)
	m.Alloc(tensor, "next gathered")
	m.Add(trace.Event{Kind: trace.Completed, ID: uint64(gathered)})
}

// evaluateBetween trains, evaluates and trains. 2.51 GiB requested and the card are from the
// report, where 6.25 GiB are allocated and 13.91 GiB reserved, and that the first update after an
// evaluation fails. The results of the evaluation, which stay beside its tensors in the blocks of
// the update, PyTorch 2.0, the release of that month, and the other sizes are our choice.
func evaluateBetween(m *requests.Maker) {
	const (
		model  = 1200 * device.MiB
		scores = 2570 * device.MiB // 2.51 GiB
		hidden = 790 * device.MiB
	)
	update := []device.Size{hidden, hidden, hidden, hidden, scores, scores}
	pass := func(name string, share device.Size) (list []requests.Tensor) {
		m.Mark("%s", name)
		for _, size := range update {
			list = append(list, m.Alloc(size*share/100, "activation"))
		}
		return list
	}
	m.Alloc(model, "model and optimizer")
	m.Free(pass("update", 100)...)
	evaluated := pass("evaluation", 90)
	for _, size := range update {
		m.Alloc(size*9/100, "result")
	}
	m.Free(evaluated...)
	m.Free(pass("update", 100)...)
}

// varyLengths trains a draft model on microbatches of different length. The hidden states of the
// target model, from every eighth layer, wait for the draft model for some microbatches. From the
// report: in long runs such microbatches strand reserved memory. All sizes are our choice.
func varyLengths(m *requests.Maker) {
	const (
		layers = 24
		every  = 8
		static = 8 * device.GiB
		hidden = 24 * device.KiB  // of a token in the tensors of a layer
		vocab  = 250 * device.KiB // of a token in the logits
		steps  = 30
		wait   = 4 // microbatches
		most   = 12000
	)
	r := workload.NewRand(seed)
	m.Alloc(static, "models and optimizer")
	var waiting [wait][]requests.Tensor
	for step := range steps {
		tokens := device.Size(most/6 + r.Below(most*5/6))
		m.Mark("microbatch %d: %d tokens", step, uint64(tokens))
		var saved, states []requests.Tensor
		for layer := range layers {
			saved = append(saved, m.Alloc(tokens*hidden, "saved for backward"))
			if layer%every == 0 {
				states = append(states, m.Alloc(tokens*hidden/4, "hidden states"))
			}
		}
		m.Free(m.Alloc(tokens*vocab, "logits"))
		m.Free(saved...)
		m.Free(waiting[step%wait]...)
		waiting[step%wait] = states
	}
}

// readLines trains on images of text lines of different width. The weights of a layer are created
// when the first batch reaches it. From the report: TensorFlow's allocator finds no memory for
// 34.10 MiB in one run and for 4.64 GiB in another, and does with
// TF_GPU_ALLOCATOR=cuda_malloc_async. The card and the sizes are our choice.
func readLines(m *requests.Maker) {
	const (
		layers  = 37
		weights = 30 * device.MiB
		column  = 100 * device.KiB // of a layer, for a column of pixels in a batch
		steps   = 6
	)
	r := workload.NewRand(seed)
	for step := range steps {
		width := device.Size(900 + 100*step + int(r.Below(100)))
		m.Mark("batch %d: %d columns", step, uint64(width))
		var saved []requests.Tensor
		for range layers {
			if step == 0 {
				m.Alloc(weights, "weights")
			}
			saved = append(saved, m.Alloc(width*column, "activation"))
		}
		m.Free(saved...)
	}
}

// balanceLoss builds the one-hot tensor of a loss over the experts of all layers. Its 48 GiB, from
// 48 layers, 131072 tokens, eight experts of 128 and eight bytes, are from the report. What else
// the training step holds is our choice.
func balanceLoss(m *requests.Maker) {
	const (
		static = 34 * device.GiB
		oneHot = 48 * 131072 * 8 * 128 * 8
	)
	m.Alloc(static, "model, optimizer and activations")
	m.Mark("loss")
	m.Alloc(oneHot, "one_hot")
}

// growPool requests 60 GiB and then 70 GiB from a MemPool. Sizes and card are from the report, and
// that the default pool serves both.
func growPool(m *requests.Maker) { inPool(m, trace.AllStreams, func() { grow(m) }) }

// grow requests a tensor and then a larger one.
func grow(m *requests.Maker) {
	for _, size := range []device.Size{60 * device.GiB, 70 * device.GiB} {
		m.Free(m.Alloc(size, "data"))
	}
}

// overlapMicrobatches runs the forward pass of a microbatch before the backward pass of an earlier
// one has freed its tensors. 54.14 GiB allocated, 686.41 MiB requested and the card are from the
// report, and that PyTorch's own allocator completes the run. The small tensors of which every
// second one stays are our choice.
func overlapMicrobatches(m *requests.Maker) {
	const (
		static = 26 * device.GiB
		small  = 12 * device.MiB
		count  = 2580
		large  = 686 * device.MiB
		want   = 40
	)
	m.Alloc(static, "model and optimizer")
	m.Mark("forward")
	var saved []requests.Tensor
	for range count {
		saved = append(saved, m.Alloc(small, "activation"))
	}
	m.Mark("backward")
	for i, t := range saved {
		if i%2 == 0 {
			m.Free(t)
		}
	}
	for range want {
		m.Alloc(large, "gradient")
	}
}

package main

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/examples/internal/requests"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// seed of all random numbers.
const seed = 9

// chat answers chats and keeps the keys and values of each for the next turn. Every turn makes the
// tensors longer: torch.cat creates new ones, then the old ones are freed. The freed blocks are too
// small for the next turn, and a log that grows by a few MiB each turn splits off parts of them
// that stay.
func chat(m *requests.Maker) {
	const (
		layers   = 16
		weights  = 256 * device.MiB // of a layer
		perToken = 4 * device.KiB   // keys, or values, of a layer: 8 heads of 128 numbers of 2 bytes
		hidden   = 28 * device.KiB  // of a token in the wide part of a layer: 14336 numbers of 2 bytes
		heads    = 2 * device.KiB   // keys and values of a token in the log
		sessions = 6
		turns    = 60
		longest  = 16000 // tokens until a new session begins
	)
	r := workload.NewRand(seed)
	for range layers {
		m.Alloc(weights, "load_weights")
	}
	var tokens [sessions]uint64
	var kept [sessions][]requests.Tensor
	for turn := range turns {
		s := r.Below(sessions)
		if tokens[s] > longest {
			m.Mark("session %d ends", s)
			m.Free(kept[s]...)
			tokens[s], kept[s] = 0, nil
		}
		added := 100 + r.Below(6000)
		tokens[s] += added
		m.Mark("turn %d: session %d at %d tokens", turn, s, tokens[s])
		old := kept[s]
		kept[s] = nil
		for layer := range layers {
			for k := range 2 {
				kept[s] = append(kept[s], m.Alloc(device.Size(tokens[s])*perToken, "torch.cat"))
				if old != nil {
					m.Free(old[2*layer+k])
				}
			}
			gate := m.Alloc(device.Size(added)*hidden, "mlp.gate")
			up := m.Alloc(device.Size(added)*hidden, "mlp.up")
			m.Free(gate, up)
			if layer%4 == 3 {
				m.Alloc(device.Size(added)*heads, "log.append(attention)")
			}
		}
	}
}

// layouts converts the weights of a mixture of experts layer by layer, as vLLM did before its pull
// request 41268, https://github.com/vllm-project/vllm/pull/41268. Three numbers are from there: the
// converted tensors take 530 MiB and 270 MiB, and the smaller one, put into a block that the larger
// has left behind, cuts off 260 MiB that serve neither. The number of layers is that of
// GPT-OSS 120B. The order of the calls and the card are our choice.
func layouts(m *requests.Maker) {
	const (
		layers = 36
		w13    = 530 * device.MiB
		w2     = 270 * device.MiB
	)
	for layer := range layers {
		m.Mark("layer %d", layer)
		raw := m.Alloc(w13, "w13 as loaded")
		m.Alloc(w13, "convert_layout(w13)")
		m.Free(raw)
		m.Alloc(w2, "convert_layout(w2)")
	}
}

// leftovers fills most of the card with tensors of 1.5 MiB and keeps one in seven of them:
// statistics of batches that were appended to a list. Then it requests large blocks. Every range of
// 11 MiB or more that PyTorch could release contains a tensor that was kept.
func leftovers(m *requests.Maker) {
	const (
		small = 3 * device.MiB / 2
		count = 6500
		every = 7
		large = 512 * device.MiB
		want  = 16
	)
	m.Mark("statistics")
	var list []requests.Tensor
	for range count {
		list = append(list, m.Alloc(small, "stats.append"))
	}
	for i, t := range list {
		if i%every != 0 {
			m.Free(t)
		}
	}
	m.Mark("evaluation")
	for range want {
		m.Alloc(large, "evaluate")
	}
}

// batches doubles the batch size until it does not fit, as a search for the largest batch does. The
// last batch needs more memory than the card has.
func batches(m *requests.Maker) {
	const (
		layers = 24
		first  = 2 * device.MiB
	)
	for range layers {
		m.Alloc(96*device.MiB, "load_weights")
	}
	for batch := device.Size(1); batch <= 512; batch *= 2 {
		m.Mark("batch %d", uint64(batch))
		var list []requests.Tensor
		for range layers {
			list = append(list, m.Alloc(batch*first, "activation"))
		}
		m.Free(list...)
	}
}

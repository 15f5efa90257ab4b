package workload

import "github.com/vramyard/vramyard/device"

// The transformer of w2: the weights of 24 layers, two moments of an optimizer and, within a step,
// the activations. Elements take two bytes.
const (
	trainLayers                = 24
	trainHidden    device.Size = 2048
	trainBatch     device.Size = 4
	trainVocab     device.Size = 32_000
	trainWorkspace             = 8 * device.MiB // of the matrix library, allocated and freed at once
	trainQuantum   device.Size = 512            // sizes are rounded up to it, as in PyTorch
	trainTensors               = 8              // parameter tensors of a layer
)

// Numbers of operations; the tests verify them.
const (
	trainParams  = 1 + trainLayers*trainTensors // the embedding, and the tensors of all layers
	trainOnce    = 3 * trainParams              // the parameters and two moments of each are never freed
	trainPerStep = 2 * 895                      // pairs within a step
)

// trainParts returns the parts of w2. All of it is timed, because a training builds up its blocks
// in its first step.
func trainParts(p Params) Parts { return Parts{Churn: trainOnce + trainPerStep*p.Steps} }

// tensors returns the sizes of one layer's parameter tensors: attention in and out, the two
// matrices of the feed-forward network, two norms, two biases.
func tensors() [trainTensors]device.Size {
	const h = trainHidden
	return [...]device.Size{3 * h * h * 2, h * h * 2, 4 * h * h * 2, 4 * h * h * 2, 2 * h * 2, 2 * h * 2,
		3 * h * 2, 4 * h * 2}
}

const embedding = trainVocab * trainHidden * 2 // bytes

func train(p Params, s *sink) {
	t := &trainer{sink: s}
	rng := NewRand(p.Seed)
	t.alloc(embedding)
	for range trainLayers {
		for _, size := range tensors() {
			t.alloc(size)
		}
	}
	for step := range p.Steps {
		if s.done {
			return
		}
		t.step(device.Size(128*(4+rng.Below(13))), step == 0)
	}
}

// trainer is the state of a training. It reuses the slot that was freed last, as programs reuse
// variables.
type trainer struct {
	*sink
	freed     []uint32 // free slots, reused last in, first out
	slots     uint32   // number of slots used so far
	gradients []uint32 // in order of creation
}

func (t *trainer) alloc(size device.Size) (slot uint32) {
	if n := len(t.freed); n > 0 {
		slot, t.freed = t.freed[n-1], t.freed[:n-1]
	} else {
		slot = t.slots
		t.slots++
	}
	t.sink.alloc(slot, roundUp(size, trainQuantum))
	return slot
}

// free frees the blocks in some slots.
func (t *trainer) free(slots ...uint32) {
	for _, slot := range slots {
		t.sink.free(slot)
		t.freed = append(t.freed, slot)
	}
}

// briefly allocates a block and frees it at once.
func (t *trainer) briefly(size device.Size) { t.free(t.alloc(size)) }

// gradient allocates a block that lives until the end of the step.
func (t *trainer) gradient(size device.Size) { t.gradients = append(t.gradients, t.alloc(size)) }

// layer holds the slots of the activations that the backward pass of a layer needs.
type layer struct{ ln1, qkv, lse, att, proj, mask, ln2, fc1, gelu, fc2 uint32 }

func (t *trainer) step(seq device.Size, first bool) {
	tok := trainBatch * seq
	u := tok * trainHidden * 2 // bytes of an activation
	x0 := t.alloc(u)
	var layers [trainLayers]layer
	for i := range layers {
		layers[i] = t.forward(tok, u)
	}
	logits := t.alloc(tok * trainVocab * 2)
	t.briefly(tok * trainVocab * 4) // softmax in single precision
	dlogits := t.alloc(tok * trainVocab * 2)
	t.free(logits)
	dx := t.alloc(u)
	t.free(dlogits)
	for i := trainLayers - 1; i >= 0; i-- {
		dx = t.backward(layers[i], u, dx)
	}
	t.gradient(embedding)
	t.free(dx, x0)
	t.optimize(embedding, first)
	for range trainLayers {
		for _, size := range tensors() {
			t.optimize(size, first)
		}
	}
	t.free(t.gradients...)
	t.gradients = t.gradients[:0]
}

// forward generates the forward pass of a layer for tok tokens and activations of u bytes.
func (t *trainer) forward(tok, u device.Size) (l layer) {
	l.ln1 = t.alloc(u)
	l.qkv = t.alloc(3 * u)
	t.briefly(trainWorkspace)
	l.lse = t.alloc(tok * 64)
	l.att = t.alloc(u)
	l.proj = t.alloc(u)
	l.mask = t.alloc(tok * trainHidden)
	l.ln2 = t.alloc(u)
	l.fc1 = t.alloc(4 * u)
	t.briefly(4 * u)
	l.gelu = t.alloc(4 * u)
	l.fc2 = t.alloc(u)
	return l
}

// backward generates the backward pass of a layer. dx is the gradient of its output; it returns the
// gradient of its input.
func (t *trainer) backward(l layer, u device.Size, dx uint32) uint32 {
	p := tensors()
	d6 := t.alloc(4 * u)
	t.gradient(p[3])
	t.free(l.fc2)
	d5 := t.alloc(4 * u)
	t.free(l.gelu, d6)
	t.gradient(p[2])
	t.gradient(p[7])
	d4 := t.alloc(u)
	t.free(l.fc1, d5)
	t.gradient(p[5])
	d3 := t.alloc(u)
	t.free(l.ln2, d4, l.mask)
	t.gradient(p[1])
	d2 := t.alloc(u)
	t.free(l.proj, d3)
	d1 := t.alloc(3 * u)
	t.briefly(trainWorkspace)
	t.free(l.att, l.lse, d2)
	t.gradient(p[0])
	t.gradient(p[6])
	d0 := t.alloc(u)
	t.free(l.qkv, d1)
	t.gradient(p[4])
	dn := t.alloc(u)
	t.free(l.ln1, d0, dx)
	return dn
}

// optimize generates the update of a parameter tensor. The first time it allocates the two moments,
// four bytes an element.
func (t *trainer) optimize(size device.Size, first bool) {
	if first {
		t.alloc(2 * size)
		t.alloc(2 * size)
	}
	t.briefly(2 * size)
}

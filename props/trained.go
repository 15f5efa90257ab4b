package props

import (
	"slices"

	"github.com/vramyard/vramyard/device"
)

// Trained returns the subject with some steps of a training run before each sequence, for a
// strategy that plans the next step when it has seen some: the sequence then meets a plan. The
// calls of the steps are judged like the others, but are no part of a sequence.
func (s Subject) Trained() Subject {
	if s.trained == nil {
		s.trained = training()
		s.Name += "/trained"
	}
	return s
}

// trainedSteps are the lengths of the steps of a trained subject. The sequence begins after a few
// calls of the last one.
var trainedSteps = [...]int{2, 3, 4, 5}

const trainedCalls = 8

// trainedLayers are the layers of the model that is trained, in units of 256 bytes.
var trainedLayers = [...]struct{ number, weight, activation, score, workspace int }{
	{1, 14, 17, 30, 120}, {2, 64, 6, 6, 63}, {3, 101, 5, 10, 206},
}

// training returns the calls of the steps. Activations grow with the length, scores with its
// square.
func training() Sequence {
	var t trainer
	var kinds []int
	for k, l := range trainedLayers {
		for range l.number {
			kinds = append(kinds, k)
			t.take(l.weight)
		}
	}
	start := 0
	for i, length := range trainedSteps {
		start = len(t.calls)
		t.step(kinds, length, i == 0)
	}
	return t.calls[:start+trainedCalls]
}

// trainer collects calls.
type trainer struct {
	calls Sequence
	live  []int // blocks by age
	ids   int
}

// take requests a block of some units and returns its id.
func (t *trainer) take(units int) int {
	t.ids++
	t.calls, t.live = append(t.calls, Op{Kind: OpAlloc, Size: device.Size(units) * 256}), append(t.live, t.ids)
	return t.ids
}

func (t *trainer) free(ids ...int) {
	for _, id := range ids {
		at := slices.Index(t.live, id)
		t.calls, t.live = append(t.calls, Op{Kind: OpFree, Pick: uint64(at)}), slices.Delete(t.live, at, at+1)
	}
}

// step runs layers forward and backward, and then the optimizer, which creates its states in the
// first step.
func (t *trainer) step(layers []int, length int, first bool) {
	var kept [][]int
	for _, k := range layers {
		l := trainedLayers[k]
		work := t.take(l.workspace * length)
		activation, score := t.take(l.activation*length), t.take(l.score*length*length)
		t.free(work)
		out := t.take(l.activation * length)
		t.free(t.take(l.workspace))
		kept = append(kept, []int{activation, score, out})
	}
	above, gradients := t.take(trainedLayers[0].activation*length), []int(nil)
	for i, k := range slices.Backward(layers) {
		l := trainedLayers[k]
		work, below := t.take(l.workspace*length), t.take(l.activation*length)
		t.free(kept[i]...)
		gradients = append(gradients, t.take(l.weight))
		t.free(work, above)
		above = below
	}
	t.free(above)
	for i, g := range gradients {
		weight := trainedLayers[layers[len(layers)-1-i]].weight
		if first {
			t.take(weight)
			t.take(weight)
		}
		work := t.take(weight + i)
		t.free(g, work)
	}
}

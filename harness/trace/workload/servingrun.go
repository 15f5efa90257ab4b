package workload

import (
	"slices"
	"time"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// servingPrompts is the least bound of the prompt tokens of an iteration: the default of vLLM's
// max_num_batched_tokens, which rises to the context.
const servingPrompts = 2048

// session is a request on the server.
type session struct {
	prompt    int      // tokens
	generated int      // tokens, when it ends
	done      int      // tokens generated so far
	blocks    []uint32 // slots of its KV cache
}

// length returns the tokens in its KV cache after the iteration that generates the next token: the
// last generated token never gets there.
func (r *session) length() int { return r.prompt + r.done }

// session returns a request at its start, and whether it is shortened to fit the context.
func (s *servingSource) session(q ServingRequest) (r session, shortened bool) {
	r.generated = int(min(q.Generated, uint32(s.Context-1)))
	r.prompt = int(min(q.Prompt, uint32(s.Context-r.generated)))
	return r, uint64(r.prompt)+uint64(r.generated) != uint64(q.Prompt)+uint64(q.Generated)
}

// need returns the bytes of the KV cache that a request has at its end.
func (s *servingSource) need(r session) device.Size {
	tokens := r.prompt + r.generated - 1
	switch s.KV {
	case kvPaged:
		tokens = blocksOf(tokens) * servingBlock
	case kvReserve:
		tokens = s.Context
	}
	return device.Size(tokens) * s.model.kvToken()
}

// blocksOf returns the number of blocks for a number of tokens.
func blocksOf(tokens int) int { return (tokens + servingBlock - 1) / servingBlock }

// server is the state of a simulated server.
type server struct {
	*servingSource
	put  func(trace.Event) bool
	done bool // put returned false

	now     time.Duration
	waiting []ServingRequest // in order of arrival
	running []*session       // in order of admission
	held    device.Size      // needs of the running requests

	freed []uint32      // free slots, reused last in, first out
	sizes []device.Size // of the blocks by slot
	tags  []uint32      // of the blocks by slot

	live, peakLive device.Size
	kv, peakKV     device.Size
	peakRunning    int
	shortened      int
	iterations     int
}

// run simulates the server until all requests have ended or put returns false.
func (s *servingSource) run(put func(trace.Event) bool) *server {
	v := s.start(put)
	for !v.done && len(v.waiting)+len(v.running) > 0 {
		v.step()
	}
	return v
}

// start returns a server with its weights and without a request.
func (s *servingSource) start(put func(trace.Event) bool) *server {
	v := &server{servingSource: s, put: put, waiting: s.log.Requests}
	for _, size := range s.model.weights() {
		v.block(size, tagWeights, alloc.LifeRun)
	}
	return v
}

// step simulates an iteration: the prompts of the requests that are admitted, or else the next
// token of each running request.
func (v *server) step() {
	if len(v.running) == 0 {
		v.now = max(v.now, v.arrival())
	}
	v.emit(trace.Event{Kind: trace.Mark, Slot: trace.NoSlot, Tag: uint32(tagMark + v.iterations)})
	v.iterations++
	batch := v.running
	if n := v.admit(); n > 0 {
		batch = v.running[len(v.running)-n:]
	}
	v.iterate(batch)
	v.retire()
}

// arrival returns when the next request arrives, in whole microseconds: a CSV holds no shorter
// times.
func (v *server) arrival() time.Duration {
	return time.Duration(float64(v.waiting[0].Arrival) / v.Speed).Truncate(time.Microsecond)
}

// admit moves waiting requests to the running ones, first come, first served, and returns their
// number. It stops at the first request for which there is no space.
func (v *server) admit() (n int) {
	room := max(v.Context, servingPrompts)
	for len(v.waiting) > 0 && len(v.running) < v.Batch && v.arrival() <= v.now {
		r, shortened := v.session(v.waiting[0])
		need := v.need(r)
		if r.prompt > room || need > v.KVMemory-v.held {
			break
		}
		if shortened {
			v.shortened++
		}
		room -= r.prompt
		v.held += need
		v.waiting = v.waiting[1:]
		v.running = append(v.running, &r)
		n++
	}
	v.peakRunning = max(v.peakRunning, len(v.running))
	return n
}

// iterate runs the model once for a batch: for the prompts of new requests, or for the last token
// of each running one.
func (v *server) iterate(batch []*session) {
	tokens, pairs, kv := 0, 0, 0
	for _, r := range batch {
		n := r.length()
		kv += n
		if r.done == 0 {
			tokens += n
			pairs += n * (n + 1) / 2
		} else {
			tokens++
			pairs += n
		}
		v.extend(r)
	}
	v.forward(batch, device.Size(tokens))
	v.now += v.model.duration(tokens, pairs, kv)
	for _, r := range batch {
		r.done++
	}
}

// extend allocates the blocks that the KV cache of a request lacks before an iteration.
func (v *server) extend(r *session) {
	row := v.model.kvWidth() * servingElement
	switch v.KV {
	case kvPaged: // keys and values of a layer in one block
		for len(r.blocks) < blocksOf(r.length())*v.model.layers {
			r.blocks = append(r.blocks, v.kvBlock(2*servingBlock*row))
		}
	case kvReserve: // keys, then values of each layer
		for len(r.blocks) < 2*v.model.layers {
			r.blocks = append(r.blocks, v.kvBlock(device.Size(v.Context)*row))
		}
	}
}

// concat replaces the keys and the values of a layer by longer ones.
func (v *server) concat(r *session, layer int) {
	size := device.Size(r.length()) * v.model.kvWidth() * servingElement
	for i := 2 * layer; i < 2*layer+2; i++ {
		if r.done == 0 {
			r.blocks = append(r.blocks, v.kvBlock(size))
			continue
		}
		old := r.blocks[i]
		r.blocks[i] = v.kvBlock(size)
		v.free(old)
	}
}

// forward allocates and frees the activations of an iteration.
func (v *server) forward(batch []*session, tokens device.Size) {
	m := v.model
	residual := v.activation(tokens * m.hidden)
	x := v.activation(tokens * m.hidden)
	next := func(width device.Size) { // the next activation is computed from the last one
		y := v.activation(tokens * width)
		v.free(x)
		x = y
	}
	for layer := range m.layers {
		next(m.qkvWidth())
		if v.KV == kvConcat {
			for _, r := range batch {
				v.concat(r, layer)
			}
		}
		next(m.hidden / m.gpus) // attention
		next(m.hidden)          // its output projection
		next(2 * m.intermediate / m.gpus)
		next(m.intermediate / m.gpus)
		next(m.hidden)
	}
	rows := device.Size(len(batch))
	last := v.activation(rows * m.hidden)
	v.free(x)
	v.free(residual)
	logits := v.activation(rows * m.vocabulary)
	v.free(last)
	single := v.activation(rows * m.vocabulary * 2) // in single precision
	v.free(logits)
	probabilities := v.activation(rows * m.vocabulary * 2)
	v.free(single)
	chosen := v.activation(rows * 4) // tokens as 64-bit integers
	v.free(probabilities)
	v.free(chosen)
}

// retire frees the KV caches of the requests that have ended.
func (v *server) retire() {
	v.running = slices.DeleteFunc(v.running, func(r *session) bool {
		if r.done < r.generated {
			return false
		}
		for _, slot := range r.blocks {
			v.free(slot)
		}
		v.held -= v.need(*r)
		return true
	})
}

func (v *server) kvBlock(size device.Size) uint32 { return v.block(size, tagKV, alloc.LifeUnknown) }

func (v *server) activation(elements device.Size) uint32 {
	return v.block(elements*servingElement, tagActivation, alloc.LifeStep)
}

// block allocates a block and returns its slot.
func (v *server) block(size device.Size, tag uint32, life alloc.Lifetime) (slot uint32) {
	if n := len(v.freed); n > 0 {
		slot, v.freed = v.freed[n-1], v.freed[:n-1]
		v.sizes[slot], v.tags[slot] = size, tag
	} else {
		slot = uint32(len(v.sizes))
		v.sizes, v.tags = append(v.sizes, size), append(v.tags, tag)
	}
	v.live += size
	v.peakLive = max(v.peakLive, v.live)
	if tag == tagKV {
		v.kv += size
		v.peakKV = max(v.peakKV, v.kv)
	}
	v.emit(trace.Event{Kind: trace.Alloc, Slot: slot, ID: uint64(slot), Size: size, Tag: tag, Life: life})
	return slot
}

func (v *server) free(slot uint32) {
	v.live -= v.sizes[slot]
	if v.tags[slot] == tagKV {
		v.kv -= v.sizes[slot]
	}
	v.freed = append(v.freed, slot)
	v.emit(trace.Event{Kind: trace.Free, Slot: slot, ID: uint64(slot)})
}

// emit passes on an event at the present time. Marks have none, because a CSV cannot hold it.
func (v *server) emit(e trace.Event) {
	e.Time = int64(v.now)
	if e.Kind == trace.Mark {
		e.Time = trace.NoTime
	}
	v.done = v.done || !v.put(e)
}

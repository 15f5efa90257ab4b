package workload

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/nearest"
)

// Layouts of the KV cache of a request.
const (
	kvPaged   = "paged"
	kvConcat  = "concat"
	kvReserve = "reserve"
)

// servingBlock is the number of tokens of a block of the paged layout: the default of vLLM.
const servingBlock = 16

// Serving describes a server of a language model: the parameters of a trace that is made from a
// request log. docs/workloads.md defines the trace.
type Serving struct {
	Model    string      // one of [ServingModels]
	KV       string      // layout of the KV cache: "paged", "concat" or "reserve"
	Batch    int         // most requests that run at once
	Context  int         // most tokens of a request, prompt and response; 0: as many as the model takes
	KVMemory device.Size // bytes that the KV caches of the running requests may take; 0: see [DefaultServing]
	Speed    float64     // factor by which requests arrive faster than in the log
}

// DefaultServing returns the parameters of a server of Llama 2 7B with vLLM's limits: 256 requests,
// and a KV cache of 90 % of the 80 GiB of a GPU less the weights.
func DefaultServing() Serving {
	return Serving{Model: servingModels[0].name, KV: kvPaged, Batch: 256, Speed: 1}
}

// servingMemory is the memory of a GPU that a server takes for weights and KV caches; the rest is
// left to activations. It is the default of vLLM's gpu_memory_utilization.
const servingMemory = 80 * device.GiB / 10 * 9

// KVLayouts returns the names of the layouts of the KV cache.
func KVLayouts() []string { return []string{kvPaged, kvConcat, kvReserve} }

// Limits of a server.
const (
	maxServingBatch = 1 << 16
	minServingSpeed = 0.01
	maxServingSpeed = 10_000
)

// Source returns the trace of a server that gets the requests of a log. It simulates the server
// once, and again at each walk; memory grows with the requests and the live blocks only. An error
// is a [*ParamError].
func (p Serving) Source(log *ServingLog) (trace.Source, error) {
	s := &servingSource{log: log}
	param, err := s.settle(p)
	if err != nil {
		return nil, &ParamError{"serving", param, err}
	}
	n := 0
	v := s.run(func(trace.Event) bool {
		n++
		return true
	})
	s.head = trace.Head{Header: s.header(v), Events: n}
	return s, nil
}

// servingSource is the trace of a server.
type servingSource struct {
	Serving
	model servingModel
	log   *ServingLog
	head  trace.Head
}

// settle fills in the defaults. It returns the first invalid parameter, and why it is invalid.
func (s *servingSource) settle(p Serving) (param string, err error) {
	s.Serving = p
	if s.model, err = lookupModel(p.Model); err != nil {
		return "model", err
	}
	if s.Context == 0 {
		s.Context = s.model.context
	}
	if s.KVMemory == 0 {
		s.KVMemory = servingMemory - sum(s.model.weights())
	}
	switch {
	case !slices.Contains(KVLayouts(), p.KV):
		return "kv", fmt.Errorf("unknown layout %q: %s", p.KV, nearest.Want(p.KV, KVLayouts()))
	case p.Batch < 1 || p.Batch > maxServingBatch:
		return "batch", fmt.Errorf("want 1 to %d", maxServingBatch)
	case s.Context < 2 || s.Context > s.model.context:
		return "context", fmt.Errorf("want 2 to %d, the most tokens of %s", s.model.context, p.Model)
	case !(p.Speed >= minServingSpeed && p.Speed <= maxServingSpeed):
		return "speed", fmt.Errorf("want %v to %v", minServingSpeed, maxServingSpeed)
	case s.KVMemory > MaxSize:
		return "kv-memory", fmt.Errorf("want at most %v", MaxSize)
	}
	var most device.Size
	for _, q := range s.log.Requests {
		r, _ := s.session(q)
		most = max(most, s.need(r))
	}
	if most > s.KVMemory {
		return "kv-memory", fmt.Errorf("%v: want at least %v, the KV cache of the largest request", s.KVMemory, most)
	}
	return "", nil
}

func (s *servingSource) Head() trace.Head { return s.head }

// Tags of the blocks, by number. Higher numbers are the marks of the iterations.
const (
	tagWeights = 1 + iota
	tagKV
	tagActivation
	tagMark // iteration 0
)

func (s *servingSource) TagOf(e *trace.Event) string {
	switch e.Tag {
	case 0:
		return ""
	case tagWeights:
		return "weights"
	case tagKV:
		return "kv"
	case tagActivation:
		return "activation"
	}
	return "iteration " + strconv.Itoa(int(e.Tag-tagMark))
}

func (s *servingSource) Batches(yield func([]trace.Event) error) error {
	b := newBatcher(yield)
	s.run(b.put)
	return b.end()
}

func (s *servingSource) header(v *server) trace.Header {
	h := trace.Header{Name: "serving-" + s.Model + "-" + s.KV}
	for _, p := range []struct {
		key   string
		value any
	}{
		{"workload", "serving"},
		{"log", s.log.Format},
		{"model", s.Model},
		{"kv", s.KV},
		{"gpus", uint64(s.model.gpus)},
		{"batch", s.Batch},
		{"context", s.Context},
		{"kv_memory_bytes", uint64(s.KVMemory)},
		{"speed", s.Speed},
		{"requests", len(s.log.Requests)},
		{"skipped_requests", s.log.Skipped},
		{"shortened_requests", v.shortened},
		{"iterations", v.iterations},
		{"peak_requests", v.peakRunning},
		{"peak_kv_bytes", uint64(v.peakKV)},
		{"peak_live_bytes", uint64(v.peakLive)},
	} {
		h.Meta = append(h.Meta, trace.Pair{Key: p.key, Value: fmt.Sprint(p.value)})
	}
	return h
}

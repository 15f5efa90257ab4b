package workload

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// tiny has a layer whose keys and values take 4 bytes each for a token.
var tiny = servingModel{"tiny", 4, 8, 1, 2, 1, 10, 64, 1}

// TestWeightsAreThePublishedParameters compares with the numbers of parameters that the model cards
// and safetensors indexes have.
func TestWeightsAreThePublishedParameters(t *testing.T) {
	for name, want := range map[string]device.Size{
		"llama2-7b":  6_738_415_616,
		"llama2-70b": 68_976_648_192,
		"llama3-8b":  8_030_261_248,
		"mistral-7b": 7_241_732_096,
	} {
		m, err := lookupModel(name)
		require.NoError(t, err)
		m.gpus = 1
		require.Equal(t, want*servingElement, sum(m.weights()), name)
	}
	require.Len(t, servingModels, 4)
	m, err := lookupModel("llama2-70b")
	require.NoError(t, err)
	norms := (2*80 + 1) * m.hidden // every GPU has them
	require.Equal(t, (68_976_648_192-norms)/4+norms, sum(m.weights())/servingElement)
}

func TestKVCachesHaveThePublishedSizes(t *testing.T) {
	for name, want := range map[string]device.Size{ // of a token: 2 · layers · KV heads · 128 · 2 bytes
		"llama2-7b":  512 * device.KiB,
		"llama2-70b": 320 * device.KiB / 4,
		"llama3-8b":  128 * device.KiB,
		"mistral-7b": 128 * device.KiB,
	} {
		m, err := lookupModel(name)
		require.NoError(t, err)
		require.Equal(t, want, m.kvToken(), name)
	}
}

func TestIterationsTakeTheirTime(t *testing.T) {
	m, err := lookupModel("llama2-7b")
	require.NoError(t, err)
	// Decoding reads 13,476,831,232 bytes of weights, and 524,288 of each token in the KV caches.
	require.Equal(t, 13_219*time.Microsecond, m.duration(1, 100, 0)) // 13,476,831,232 / 1,019,500
	require.Equal(t, (13_476_831_232+524_288*1_000_000)/1_019_500*time.Microsecond, m.duration(1, 100, 1_000_000))
	// A prompt of 4096 tokens computes 2 · 6,476,267,520 · 4096 operations, and 4 · 4096 · 32 for
	// each of its pairs.
	const pairs = 4096 * 4097 / 2
	require.Equal(t, (2*6_476_267_520*4096+4*4096*32*pairs)/156_000_000*time.Microsecond, m.duration(4096, pairs, 4096))
}

// tinyServer returns a server of the tiny model.
func tinyServer(kv string, memory device.Size, requests ...ServingRequest) *servingSource {
	return &servingSource{
		Serving: Serving{Model: "tiny", KV: kv, Batch: 3, Context: 40, KVMemory: memory, Speed: 1},
		model:   tiny,
		log:     &ServingLog{Requests: requests},
	}
}

func TestServedRequestsMakeThisTrace(t *testing.T) {
	// The second request waits, because the need of the first one is all the memory: 18 tokens in
	// two blocks.
	s := tinyServer(kvPaged, 256, ServingRequest{0, 17, 2}, ServingRequest{5999, 3, 1})
	want, err := os.ReadFile("testdata/serving.trace")
	require.NoError(t, err)
	var text strings.Builder
	require.NoError(t, trace.Write(&text, s))
	require.Equal(t, string(want), text.String())
}

// randomServer returns a server with up to 20 requests.
func randomServer(r *Rand, kv string) *servingSource {
	s := tinyServer(kv, 0)
	s.model.layers = 1 + int(r.Below(3))
	s.Speed = float64(1 + r.Below(3))
	s.Context = 2 + int(r.Below(60))
	at := time.Duration(0)
	for range 1 + r.Below(20) {
		at += time.Duration(r.Below(4)) * time.Microsecond
		s.log.Requests = append(s.log.Requests, ServingRequest{at, uint32(1 + r.Below(50)), uint32(1 + r.Below(30))})
	}
	for _, q := range s.log.Requests {
		one, _ := s.session(q)
		s.KVMemory = max(s.KVMemory, s.need(one))
	}
	s.KVMemory += device.Size(r.Below(3000))
	return s
}

// cached returns the bytes that the KV cache of a request has between two iterations.
func cached(s *servingSource, r *session) device.Size {
	tokens := r.prompt + r.done - 1
	token := device.Size(8 * s.model.layers)
	switch s.KV {
	case kvPaged:
		return device.Size((tokens+15)/16*16) * token
	case kvReserve:
		return device.Size(s.Context) * token
	}
	return device.Size(tokens) * token
}

func TestKVCachesAreThoseOfTheRunningRequests(t *testing.T) {
	for seed := range uint64(40) {
		for _, kv := range KVLayouts() {
			s := randomServer(NewRand(seed), kv)
			b := trace.NewBuilder(trace.Header{})
			v := s.start(func(e trace.Event) bool {
				if err := b.Add(e); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				return true
			})
			weights := v.live
			iterations := 0
			for len(v.waiting)+len(v.running) > 0 {
				v.step()
				var want device.Size
				for _, r := range v.running {
					want += cached(s, r)
					require.Less(t, r.done, r.generated)
				}
				require.Equal(t, want, v.kv, "seed %d, %s, iteration %d", seed, kv, v.iterations)
				require.Equal(t, weights+v.kv, v.live, "activations live on")
				require.LessOrEqual(t, v.kv, v.held)
				require.LessOrEqual(t, v.held, s.KVMemory)
				require.LessOrEqual(t, len(v.running), s.Batch)
				iterations++
			}
			require.Zero(t, v.held)
			bound := s.KVMemory
			if kv == kvConcat {
				bound += device.Size(4 * s.Context) // the longer tensor beside the old one
			}
			require.LessOrEqual(t, v.peakKV, bound)
			require.Equal(t, iterations, v.iterations)
			requireLifetimes(t, b.Trace(), v)
		}
	}
}

// requireLifetimes requires that weights are never freed, that no activation survives its
// iteration, and that the peaks are those of the server.
func requireLifetimes(t *testing.T, tr *trace.Trace, v *server) {
	t.Helper()
	type live struct {
		size device.Size
		tag  uint32
	}
	blocks := map[uint64]live{}
	var now, peak device.Size
	for _, e := range tr.Events {
		switch e.Kind {
		case trace.Mark:
			for id, b := range blocks {
				if b.tag == tagActivation {
					t.Fatalf("activation %d survives", id)
				}
			}
		case trace.Alloc:
			blocks[e.ID] = live{e.Size, e.Tag}
			now += e.Size
			peak = max(peak, now)
		case trace.Free:
			now -= blocks[e.ID].size
			delete(blocks, e.ID)
		}
	}
	for _, b := range blocks {
		require.Equal(t, uint32(tagWeights), b.tag)
	}
	require.Len(t, blocks, len(v.model.weights()))
	require.Equal(t, peak, v.peakLive)
}

func TestRequestsAreShortenedToTheContext(t *testing.T) {
	s := tinyServer(kvPaged, 1000)
	for _, c := range []struct {
		q                 ServingRequest
		prompt, generated int
		shortened         bool
	}{
		{ServingRequest{0, 30, 10}, 30, 10, false},
		{ServingRequest{0, 31, 10}, 30, 10, true},
		{ServingRequest{0, 1, 40}, 1, 39, true},
		{ServingRequest{0, 1<<32 - 1, 1<<32 - 1}, 1, 39, true},
	} {
		r, shortened := s.session(c.q)
		require.Equal(t, []int{c.prompt, c.generated}, []int{r.prompt, r.generated})
		require.Equal(t, c.shortened, shortened)
	}
}

func TestWalksOfAServerEndEarly(t *testing.T) {
	s := tinyServer(kvConcat, 10_000, slices.Repeat([]ServingRequest{{0, 20, 20}}, 1000)...)
	errStop := errors.New("stop")
	batches := 0
	err := s.Batches(func([]trace.Event) error {
		batches++
		return errStop
	})
	require.ErrorIs(t, err, errStop)
	require.Equal(t, 1, batches)
}

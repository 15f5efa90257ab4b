package workload

import (
	"fmt"
	"time"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/nearest"
)

// servingElement is the number of bytes of an element of the weights, the KV cache and the
// activations: float16 or bfloat16, the type of the published weights of every model here.
const servingElement = 2

// servingModel is the shape of a transformer, from the file config.json of its publisher.
type servingModel struct {
	name         string
	hidden       device.Size // hidden_size
	intermediate device.Size // intermediate_size
	layers       int         // num_hidden_layers
	heads        device.Size // num_attention_heads
	kvHeads      device.Size // num_key_value_heads
	vocabulary   device.Size // vocab_size
	context      int         // max_position_embeddings
	gpus         device.Size // GPUs that share the tensors; the trace is of one
}

// servingModels are the models by their configurations: meta-llama/Llama-2-7b-hf,
// meta-llama/Llama-2-70b-hf, meta-llama/Meta-Llama-3-8B, mistralai/Mistral-7B-Instruct-v0.2. The
// weights of the second take 129 GiB; 4 GPUs of 80 GiB leave space for its KV cache.
var servingModels = []servingModel{
	{"llama2-7b", 4096, 11008, 32, 32, 32, 32000, 4096, 1},
	{"llama2-70b", 8192, 28672, 80, 64, 8, 32000, 4096, 4},
	{"llama3-8b", 4096, 14336, 32, 32, 8, 128256, 8192, 1},
	{"mistral-7b", 4096, 14336, 32, 32, 8, 32000, 32768, 1},
}

// ServingModels returns the names of the models that [Serving] accepts.
func ServingModels() (names []string) {
	for _, m := range servingModels {
		names = append(names, m.name)
	}
	return names
}

func lookupModel(name string) (servingModel, error) {
	for _, m := range servingModels {
		if m.name == name {
			return m, nil
		}
	}
	return servingModel{}, fmt.Errorf("unknown model %q: %s", name, nearest.Want(name, ServingModels()))
}

// kvWidth returns the elements of a token in the keys of a layer, on one GPU; its values have as
// many.
func (m servingModel) kvWidth() device.Size { return m.hidden / m.heads * m.kvHeads / m.gpus }

// qkvWidth returns the elements of a token's query, key and value in a layer, on one GPU.
func (m servingModel) qkvWidth() device.Size { return m.hidden/m.gpus + 2*m.kvWidth() }

// kvToken returns the bytes of a token in the KV cache of all layers, on one GPU.
func (m servingModel) kvToken() device.Size {
	return 2 * m.kvWidth() * servingElement * device.Size(m.layers)
}

// layerTensors returns the elements of the weights of a layer on one GPU, in the order of use:
// norm, query with key and value, attention output, norm, gate with up projection, down projection.
// The matrices are divided among the GPUs.
func (m servingModel) layerTensors() []device.Size {
	h, i := m.hidden, m.intermediate/m.gpus
	return []device.Size{h, h * m.qkvWidth(), h / m.gpus * h, h, h * 2 * i, i * h}
}

// weights returns the bytes of every tensor of weights on one GPU, in the order of loading: the
// embedding, the layers, the last norm, the head.
func (m servingModel) weights() (tensors []device.Size) {
	edge := m.vocabulary / m.gpus * m.hidden
	tensors = append(tensors, edge)
	for range m.layers {
		tensors = append(tensors, m.layerTensors()...)
	}
	tensors = append(tensors, m.hidden, edge)
	for i := range tensors {
		tensors[i] *= servingElement
	}
	return tensors
}

// sum returns the sum of sizes.
func sum(sizes []device.Size) (n device.Size) {
	for _, s := range sizes {
		n += s
	}
	return n
}

// The throughput of an iteration, for each microsecond: half of the peaks of an A100 SXM with 80
// GB, which its data sheet has as 2,039 GB/s of memory bandwidth and 312 TFLOPS in bfloat16. One
// half is an assumption.
const (
	servingBandwidth device.Size = 2_039_000 / 2   // bytes
	servingFlops     device.Size = 312_000_000 / 2 // floating-point operations
)

// duration returns the time of an iteration in whole microseconds: of reading the weights and the
// KV cache of kv tokens, or of computing, whichever is longer. tokens are the tokens computed,
// pairs the pairs of one of them and a token that it attends to.
func (m servingModel) duration(tokens, pairs, kv int) time.Duration {
	bytes := sum(m.weights()) + device.Size(kv)*m.kvToken()
	layer := 2*sum(m.layerTensors())*device.Size(tokens) + 4*m.hidden/m.gpus*device.Size(pairs)
	return time.Duration(max(bytes/servingBandwidth, layer*device.Size(m.layers)/servingFlops)) * time.Microsecond
}

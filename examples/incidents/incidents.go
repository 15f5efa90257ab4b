package main

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/examples/internal/requests"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/torch"
)

// incident is a public report of a program that ran out of memory.
type incident struct {
	name      string
	link      string      // of the report, without "https://github.com/"
	card      device.Size // memory that the allocator can get
	framework string      // "": PyTorch
	version   string      // of PyTorch; "": the report has none
	settings  string      // of the report: PYTORCH_ALLOC_CONF, or one variable of another framework
	make      func(*requests.Maker)
}

// incidents holds all of them, in the order of README.md.
var incidents = []incident{
	{
		name: "convert-weights", link: "vllm-project/vllm/pull/41268", card: 79 * device.GiB, version: "2.10.0",
		make: convertWeights,
	},
	{name: "prefill-long", link: "sgl-project/sglang/issues/34155", card: 178 * device.GiB, make: prefillLong},
	{name: "capture-ascending", link: "lightseekorg/tokenspeed/pull/1065", card: 79 * device.GiB, make: captureAscending},
	{name: "expand-tokens", link: "pytorch/torchtitan/issues/3865", card: 74 * device.GiB, make: expandTokens},
	{name: "reload-optimizer", link: "NovaSky-AI/SkyRL/pull/1470", card: 156 * device.GiB, make: reloadOptimizer},
	{name: "keep-routing", link: "NVIDIA-NeMo/RL/issues/2319", card: 92 * device.GiB, make: keepRouting},
	{name: "leave-residue", link: "NVIDIA-NeMo/RL/issues/2619", card: 79 * device.GiB, make: leaveResidue},
	{name: "beside-nccl", link: "radixark/miles/pull/2199", card: 116 * device.GiB, make: besideNCCL},
	{name: "copy-masters", link: "NVIDIA-NeMo/Megatron-Bridge/pull/3706", card: 79 * device.GiB, make: copyMasters},
	{name: "second-step", link: "pytorch/pytorch/issues/35901", card: 23337 * device.MiB, make: secondStep},
	{
		name: "keep-one", link: "pytorch/pytorch/pull/193400", card: 16304 * device.MiB, version: "2.12.0",
		settings: "max_split_size_mb:128,expandable_segments:True", make: keepOne,
	},
	{name: "wait-for-stream", link: "pytorch/pytorch/issues/189504", card: 61952 * device.MiB, make: waitForStream},
	{name: "grow-pool", link: "pytorch/pytorch/issues/159674", card: 79 * device.GiB, make: growPool},
	{
		name: "evaluate-between", link: "mlcommons/algorithmic-efficiency/issues/426", card: 14533 * device.MiB,
		version: "2.0.1", make: evaluateBetween,
	},
	{name: "vary-lengths", link: "sgl-project/SpecForge/pull/739", card: 20 * device.GiB, make: varyLengths},
	{name: "balance-loss", link: "huggingface/transformers/pull/48131", card: 79 * device.GiB, make: balanceLoss},
	{
		name: "overlap-microbatches", link: "pytorch/pytorch/issues/110194", card: 81254 * device.MiB,
		settings: "backend:cudaMallocAsync", make: overlapMicrobatches,
	},
	{
		name: "read-lines", link: "knaw-huc/loghi/issues/55", card: 8 * device.GiB, framework: "TensorFlow",
		make: readLines,
	},
	{
		name: "resume-run", link: "marin-community/marin/issues/7115", card: 64 * device.GiB, framework: "JAX",
		settings: "XLA_PYTHON_CLIENT_MEM_FRACTION=0.90", make: resumeRun,
	},
	{
		name: "grow-batch", link: "marin-community/marin/issues/8054", card: 188716 * device.MiB, framework: "JAX",
		make: growBatch,
	},
}

// trace returns the requests of an incident, with a header about the program and the card.
func (n *incident) trace() (*trace.Trace, error) {
	h := trace.Header{Name: n.name}
	add := func(key, value string) { h.Meta = append(h.Meta, trace.Pair{Key: key, Value: value}) }
	if n.framework == "" {
		config, err := json.Marshal(map[string]string{"conf": n.settings})
		if err != nil {
			return nil, err
		}
		add(torch.KeyConfig, string(config))
		if n.version != "" {
			add(trace.TorchKey, n.version)
		}
	} else {
		add(trace.FrameworkKey, n.framework)
		if name, value, ok := strings.Cut(n.settings, "="); ok {
			add(name, value)
		}
	}
	add(torch.KeyCapacity, strconv.FormatUint(uint64(n.card), 10))
	m := requests.New(h)
	n.make(m)
	return m.Trace()
}

package top

import (
	"iter"
	"strings"
)

// Category is the purpose of memory.
type Category string

// The categories, in report order.
const (
	Weights        Category = "weights"
	Gradients      Category = "gradients"
	InnerGradients Category = "gradients of activations"
	Optimizer      Category = "optimizer"
	Activations    Category = "activations"
	Cache          Category = "key-value cache"
	Temporary      Category = "temporary"
	Inputs         Category = "inputs"
	Unknown        Category = "not known"
)

// Categories lists all categories in report order.
var Categories = []Category{
	Weights, Activations, Gradients, Optimizer, InnerGradients, Cache, Temporary, Inputs, Unknown,
}

// tagWords maps the leading letters of tags to categories. Function names are matched too.
var tagWords = map[string]Category{
	"weight": Weights, "weights": Weights, "param": Weights, "params": Weights, "parameter": Weights,
	"parameters": Weights,
	"grad":       Gradients, "grads": Gradients, "gradient": Gradients, "gradients": Gradients,
	"actgrad": InnerGradients, "optimizer": Optimizer, "optim": Optimizer,
	"activation": Activations, "activations": Activations, "kvcache": Cache,
	"temp": Temporary, "temporary": Temporary, "workspace": Temporary, "input": Inputs, "inputs": Inputs, "batch": Inputs,
}

func ofTag(tag string) Category {
	word := strings.ToLower(tag)
	if i := strings.IndexFunc(word, func(r rune) bool { return r < 'a' || r > 'z' }); i >= 0 {
		word = word[:i]
	}
	if c, ok := tagWords[word]; ok {
		return c
	}
	return Unknown
}

// ofStack returns the category of the innermost frame with a known one.
func ofStack(frames iter.Seq2[string, string]) Category {
	for file, function := range frames {
		if c := ofFrame(strings.ReplaceAll(file, `\`, "/"), function); c != Unknown {
			return c
		}
	}
	return Unknown
}

// ofFrame returns the category of allocations below a frame.
func ofFrame(file, function string) Category {
	lower := strings.ToLower(function)
	switch {
	case containsAny(file, "/optim/", "/optimizers/", "/ops/adam/"):
		return Optimizer
	case containsAny(file+" "+lower, "kv_cache", "kvcache", "cache_utils.py"):
		return Cache
	case containsAny(function, "torch::autograd::Engine", "torch::autograd::generated::") &&
		!strings.Contains(function, "VariableType"),
		containsAny(file, "torch/autograd/graph.py", "torch/autograd/__init__.py") && containsAny(lower, "backward", "grad"):
		return Gradients
	case strings.Contains(lower, "load") && containsAny(lower, "weight", "state_dict", "checkpoint", "shard",
		"pretrained"),
		containsAny(lower, "from_pretrained", "reset_parameters"),
		strings.Contains(file, "torch/nn/modules/") && function == "__init__",
		strings.HasSuffix(file, "torch/nn/modules/module.py") && (function == "_apply" || function == "convert" ||
			function == "to"):
		return Weights
	case lower == "forward", strings.HasSuffix(file, "torch/nn/functional.py"):
		return Activations
	}
	return ofTag(function) // functions named after their result
}

func containsAny(text string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}

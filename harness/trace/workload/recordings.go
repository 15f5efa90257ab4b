package workload

import (
	"embed"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/nearest"
)

//go:embed recorded/*.csv.zst
var recordingFiles embed.FS

// Recording is a trace built into the program.
type Recording struct {
	Name string // argument of [OpenRecording]
	Doc  string // the recorded program, in a few words
}

// recordings lists the traces in alphabetical order.
var recordings = [...]Recording{
	{"cpu_gpt2_train_varlen", "GPT-2 small, AdamW, padded length differs from step to step; ran on the CPU"},
	{"cpu_resnet50_train", "ResNet-50, SGD, batch 20, a partial last batch; ran on the CPU"},
	{"cpu_unet_train", "UNet, Adam, image size differs from step to step; ran on the CPU"},
	{"meta_llama7b_fsdp8", "LLaMA-7B, one rank of eight, fully sharded, two streams; shapes only"},
	{"meta_llama7b_lora", "LLaMA-7B with LoRA, batch 4, length 300 to 2048; shapes only"},
	{"meta_moe_ep_train", "mixture of experts, one rank, random token counts, two streams; shapes only"},
	{"meta_resnet50_b256", "ResNet-50 in bf16, batch 256, evaluation in between; shapes only"},
}

// Recordings returns the traces in alphabetical order. The caller owns the list.
func Recordings() []Recording { return slices.Clone(recordings[:]) }

// RecordingNames returns the names of the traces in alphabetical order. The caller owns the list.
func RecordingNames() []string {
	names := make([]string, len(recordings))
	for i, a := range recordings {
		names[i] = a.Name
	}
	return names
}

// OpenRecording reads the trace with the given name. Every call decodes the trace, in some tens of
// milliseconds. The caller owns it.
func OpenRecording(name string) (*trace.Trace, error) {
	names := RecordingNames()
	if slices.Contains(names, name) {
		return readRecording(name)
	}
	return nil, fmt.Errorf("unknown recorded trace %q: %s", name, nearest.Want(name, names))
}

func readRecording(name string) (*trace.Trace, error) {
	f, err := recordingFiles.Open("recorded/" + name + ".csv.zst")
	if err != nil {
		return nil, err
	}
	defer f.Close() // in memory: no error matters
	return trace.Read(f, name+".csv.zst", trace.Options{})
}

// EachRecording yields every trace with its name, in alphabetical order, reading one at a time. It
// panics if one cannot be read: they are part of the binary, and a test reads all of them.
func EachRecording(yield func(string, *trace.Trace) bool) {
	for _, n := range RecordingNames() {
		t, err := readRecording(n)
		if err != nil {
			panic("recorded: " + err.Error())
		}
		if !yield(n, t) {
			return
		}
	}
}

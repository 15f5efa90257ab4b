package recorded

import (
	"embed"
	"fmt"
	"strings"

	"github.com/vramyard/vramyard/harness/trace"
)

//go:embed data/*.csv.zst
var files embed.FS

// names are the traces in alphabetical order.
var names = [...]string{
	"cpu_gpt2_train_varlen",
	"cpu_resnet50_train",
	"cpu_unet_train",
	"meta_llama7b_fsdp8",
	"meta_llama7b_lora",
	"meta_moe_ep_train",
	"meta_resnet50_b256",
}

// Names returns the names of the traces in alphabetical order. The list is the caller's.
func Names() []string { return append([]string(nil), names[:]...) }

// Open reads the trace with the given name. It decodes anew on each call, in some tens of
// milliseconds; the trace is the caller's.
func Open(name string) (*trace.Trace, error) {
	for _, n := range names {
		if n == name {
			return read(n)
		}
	}
	return nil, fmt.Errorf("unknown recorded trace %q: want one of %s", name, strings.Join(names[:], ", "))
}

func read(name string) (*trace.Trace, error) {
	f, err := files.Open("data/" + name + ".csv.zst")
	if err != nil {
		return nil, err
	}
	defer f.Close() // in memory: nothing can be lost
	return trace.Read(f, name+".csv.zst", trace.Options{})
}

// All yields every trace by its name, in alphabetical order, each read when it is its
// turn. It panics if one cannot be read: they are part of the binary, and a test reads
// them all.
func All(yield func(string, *trace.Trace) bool) {
	for _, n := range names {
		t, err := read(n)
		if err != nil {
			panic("recorded: " + err.Error())
		}
		if !yield(n, t) {
			return
		}
	}
}

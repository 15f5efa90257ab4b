package cli

import (
	"errors"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/internal/budget"
)

// servingFlags are the flags of "trace gen serving".
type servingFlags struct {
	server   workload.Serving
	requests uint32
	duration time.Duration
	memory   string
	to       string
}

func newTraceGenServing() *cobra.Command {
	f := servingFlags{server: workload.DefaultServing()}
	c := &cobra.Command{
		Use:   "serving LOG OUT",
		Short: "a server of a language model that gets the requests of a published log",
		Long: `Generate the trace of a server of a language model: its weights, the KV cache of each request, and the activations of
each iteration. LOG holds the arrival, the prompt tokens and the generated tokens of each request: an Azure LLM inference
trace of 2023 or 2024, or a file of BurstGPT, compressed or not. docs/workloads.md defines the server, and says where the
logs are and how to cite them. Nothing is random.

--kv decides the layout of the KV cache. With "paged" each layer has a block for 16 tokens; with "concat" its keys and its
values are replaced by longer tensors in every iteration; with "reserve" they have space for --context tokens at once.`,
		Example: "  vramyard trace gen serving AzureLLMInferenceTrace_conv.csv serving.csv.zst\n" +
			"  vramyard trace gen serving --model llama3-8b --kv concat --requests 200 BurstGPT_1.csv serving.parquet",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0], args[1]) },
	}
	s := &f.server
	c.Flags().StringVar(&s.Model, "model", s.Model, "model: "+strings.Join(workload.ServingModels(), ", "))
	c.Flags().StringVar(&s.KV, "kv", s.KV, "layout of the KV cache: "+strings.Join(workload.KVLayouts(), ", "))
	c.Flags().StringVar(&f.memory, "kv-memory", "", "bytes for KV caches, such as 20GiB; otherwise 72GiB less the weights")
	c.Flags().IntVar(&s.Batch, "batch", s.Batch, "most requests that run at once")
	c.Flags().IntVar(&s.Context, "context", 0, "most tokens of a request, which is shortened; 0 for the model's maximum")
	c.Flags().Float64Var(&s.Speed, "speed", s.Speed, "let requests arrive this many times faster than in the log")
	c.Flags().Uint32Var(&f.requests, "requests", 1000, "take the first requests of the log, 0 for all")
	c.Flags().DurationVar(&f.duration, "duration", 0, "take the requests of the first part of the log, such as 10m")
	c.Flags().StringVar(&f.to, "to", "", toUsage)
	return c
}

func (f *servingFlags) run(cmd *cobra.Command, in, out string) error {
	if err := argument(out).check(in); err != nil {
		return err
	}
	form, err := traceForm(f.to, out)
	if err != nil {
		return err
	}
	if cmd.Flags().Changed("kv-memory") {
		if f.server.KVMemory, err = sizeFlag("kv-memory", f.memory); err == nil && f.server.KVMemory == 0 {
			err = flagError("kv-memory", errNone)
		}
		if err != nil {
			return err
		}
	}
	if f.duration < 0 {
		return flagError("duration", errors.New("want 0 or more"))
	}
	log, err := readFile(cmd, in, budget.Default, f.read)
	if err != nil {
		return err
	}
	src, err := f.server.Source(log)
	if err != nil {
		return paramError(err)
	}
	if err := checkEvents(src.Head().Header.Name, src.Head().Events, form); err != nil {
		return err
	}
	return writeGenerated(cmd, src, form, out)
}

func (f *servingFlags) read(name string, in io.Reader, memory *budget.Budget) (*workload.ServingLog, error) {
	lines, err := trace.NewLines(in, name, memory)
	if err != nil {
		return nil, err
	}
	defer lines.Close()
	return workload.ReadServingLog(lines, int(f.requests), f.duration)
}

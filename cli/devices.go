package cli

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/cuda"
	"github.com/vramyard/vramyard/device/nvml"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/internal/units"
)

// devicesSchema names the form of [deviceList] in JSON.
const devicesSchema = "vramyard-devices/1"

// deviceList is the JSON output of the command devices.
type deviceList struct {
	Schema     string           `json:"schema"`
	Provenance provenance.Build `json:"provenance"` // of the program
	Cards      []sim.Card       `json:"cards"`
	Costs      []callCost       `json:"costs"` // of the default table
	// CUDA is the inventory of the CUDA driver, or null with the reason in NoCUDA.
	CUDA   *cuda.Inventory `json:"cuda"`
	NoCUDA string          `json:"no_cuda,omitempty"`
	// NVML is the inventory of the management library, or null with the reason in NoNVML.
	NVML   *nvml.Inventory `json:"nvml"`
	NoNVML string          `json:"no_nvml,omitempty"`
}

type callCost struct {
	Call string `json:"call"`
	sim.Cost
}

func newDevices() *cobra.Command {
	var files outputs
	c := &cobra.Command{
		Use:   "devices",
		Short: "List the GPUs of this machine and the simulated cards",
		Long: `List the GPUs for --device cuda:N and the cards for --device sim:CARD, with the memory available to CUDA,
its bandwidth and the bandwidth of the link to the host. --json adds the sources of both and the cost of each call. docs/device-model.md describes the
model of a card, docs/gpu.md the use of a GPU.

A program built with "-tags nvml" also shows the figures of NVIDIA's management library: memory in use and
reserved, BAR1, ECC, MIG and compute processes.`,
		Example: "  vramyard compare --device sim:rtx4090-24g gpt2_train.csv\n  vramyard replay --strategy bfc --device " +
			"cuda:0 gpt2_train.csv",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := files.check(); err != nil {
				return err
			}
			l := listDevices()
			files.json(l)
			return files.write(cmd.OutOrStdout(), func(w io.Writer) error {
				if err := l.gpuTable(w); err != nil {
					return err
				}
				return deviceTable(w)
			})
		},
	}
	files.add(c, "json",
		`also write the cards and the costs of calls as JSON to this file, "-" for standard output instead of the table`)
	return c
}

// listDevices returns the GPUs, the cards and the costs of calls. A missing driver is reported, not
// an error.
func listDevices() deviceList {
	l := deviceList{Schema: devicesSchema, Provenance: provenance.Read(), Cards: sim.Cards()}
	costs, _ := sim.Published.Costs()
	for call, cost := range costs {
		l.Costs = append(l.Costs, callCost{device.Call(call).String(), cost})
	}
	if all, err := cuda.List(""); err != nil {
		l.NoCUDA = err.Error()
	} else {
		l.CUDA = &all
	}
	if all, err := managed(); err != nil {
		l.NoNVML = err.Error()
	} else {
		l.NVML = &all
	}
	return l
}

// managed lists the GPUs that the management library reports.
func managed() (nvml.Inventory, error) {
	s, err := nvml.Open()
	if err != nil {
		return nvml.Inventory{}, err
	}
	defer s.Close() // the inventory is complete
	return s.Inventory()
}

// gpuTable writes the GPUs, or the reason why none are listed.
func (l *deviceList) gpuTable(w io.Writer) error {
	if l.CUDA == nil {
		_, err := fmt.Fprintf(w, "no GPU (%s)\n\n", l.NoCUDA)
		return err
	}
	t := report.NewSheet("", l.gpuColumns(), l.CUDA.GPUs)
	_, err := fmt.Fprintf(w, "driver for CUDA %s\n%s\n\n", l.CUDA.Driver, t.Terminal(w))
	return err
}

// gpuColumns are the columns of the GPUs; the last ones hold what the management library reports.
func (l *deviceList) gpuColumns() []report.ColumnOf[cuda.GPU] {
	managed := func(name string, text func(nvml.GPU) string) report.ColumnOf[cuda.GPU] {
		return report.Texts(name, "", func(g cuda.GPU) string {
			if l.NVML != nil {
				for _, m := range l.NVML.GPUs {
					if m.PCI == g.PCI {
						return text(m)
					}
				}
			}
			return "—"
		})
	}
	return []report.ColumnOf[cuda.GPU]{
		report.Texts("--device", "", func(g cuda.GPU) string { return fmt.Sprintf("cuda:%d", g.Ordinal) }),
		report.Texts("GPU", "", func(g cuda.GPU) string { return units.Printable(g.Name) }),
		report.Texts("memory", "", func(g cuda.GPU) string { return units.Bytes(g.Memory) }),
		report.Texts("capability", "", func(g cuda.GPU) string { return g.Capability }),
		report.Texts("bus", "", func(g cuda.GPU) string { return g.PCI }),
		managed("in use", func(m nvml.GPU) string { return units.Bytes(m.Memory.Used) }),
		managed("reserved", func(m nvml.GPU) string { return units.Bytes(m.Memory.Reserved) }),
		managed("ECC", func(m nvml.GPU) string { return fmt.Sprint(m.ECC) }),
		managed("MIG", func(m nvml.GPU) string { return fmt.Sprint(m.MIG) }),
		managed("processes", func(m nvml.GPU) string { return strconv.Itoa(len(m.Processes)) }),
	}
}

var cardColumns = []report.ColumnOf[sim.Card]{
	report.Texts("--device", "", func(c sim.Card) string { return "sim:" + c.Name }),
	report.Texts("card", "", func(c sim.Card) string { return c.Model }),
	report.Texts("memory", "", func(c sim.Card) string { return units.Bytes(c.Memory) }),
	report.Texts("bandwidth", "", func(c sim.Card) string { return strconv.FormatUint(c.Bandwidth/1e9, 10) + " GB/s" }),
	report.Texts("link to host", "", func(c sim.Card) string { return fmt.Sprintf("%.1f GB/s", float64(c.Link)/1e9) }),
}

func deviceTable(w io.Writer) error {
	t := report.NewSheet("", cardColumns, sim.Cards())
	_, err := fmt.Fprintf(w, "%s\nsim: an unbounded device; sim:24GiB: a device of this capacity\n", t.Terminal(w))
	return err
}

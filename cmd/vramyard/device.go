package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/report"
	"github.com/vramyard/vramyard/internal/outfile"
)

// deviceFlags name the simulated device of a command.
type deviceFlags struct {
	device, sim spec // commands may have no --sim
}

// spec is the value of a flag that may not be empty, as that of a variable that is not set would be.
type spec struct {
	value string
	given bool
}

// add adds the flag to a command.
func (s *spec) add(c *cobra.Command, name, usage string) {
	c.Flags().Func(name, usage, func(value string) error {
		*s = spec{value, true}
		return nil
	})
}

// addDevice adds the flag --device; does says what the command takes of it.
func (f *deviceFlags) addDevice(c *cobra.Command, does string) {
	f.device.add(c, "device",
		"simulated `device`: \"sim\", \"sim:24GiB\", or \"sim:h100-80g\" for one like a card (\"vramyard devices\" lists them); "+does)
}

// addSim adds the flag --sim; means describes its value.
func (f *deviceFlags) addSim(c *cobra.Command, means string) {
	f.sim.add(c, "sim", means)
}

var errTwoDevices = errors.New("--device says what the device is: want one of the two")

// config returns the device that the flags name; none of them means the default one.
func (f *deviceFlags) config() (sim.Config, error) {
	switch {
	case f.device.given && f.sim.given:
		return sim.Config{}, flagError("sim", errTwoDevices)
	case f.device.given:
		c, err := sim.ParseDevice(f.device.value)
		if err != nil {
			err = flagError("device", err)
		}
		return c, err
	}
	if !f.sim.given {
		return sim.Config{}, nil
	}
	c, err := sim.ParseConfig([]byte(f.sim.value))
	if strings.TrimSpace(f.sim.value) == "" {
		err = errors.New("want a JSON object")
	}
	if err != nil {
		err = flagError("sim", err)
	}
	return c, err
}

// shape returns the device but for its capacity, and that apart, 0 if it is not bounded. It is for
// commands that choose capacities themselves, whose --sim may have none.
func (f *deviceFlags) shape() (sim.Config, device.Size, error) {
	c, err := f.config()
	if err == nil && f.sim.given && c.Capacity != 0 {
		err = flagError("sim", errors.New("capacity: is what this command varies"))
	}
	if err != nil {
		return sim.Config{}, 0, err
	}
	n := c.Capacity
	c.Capacity = 0
	return c, n, nil
}

// simShapeUsage describes the flag --sim of commands that choose capacities themselves.
const simShapeUsage = `simulated device but for its capacity, as a JSON object; {"charge":"2MiB"} charges whole pages, as cards do`

// defaultDevice returns the default device in JSON.
func defaultDevice() string {
	c, err := sim.ParseConfig([]byte("{}"))
	if err != nil {
		panic(err) // every field has a default
	}
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // a struct of numbers and texts
	}
	return string(text)
}

// devicesSchema names the form of [deviceList] in JSON.
const devicesSchema = "vramyard-devices/1"

// deviceList is what the command devices knows, as JSON.
type deviceList struct {
	Schema  string     `json:"schema"`
	Version string     `json:"version"` // of the program
	Cards   []sim.Card `json:"cards"`
	Costs   []callCost `json:"costs"` // of the default table
}

// callCost is what one kind of call costs.
type callCost struct {
	Call string `json:"call"`
	sim.Cost
}

func newDevices() *cobra.Command {
	var jsonFile string
	c := &cobra.Command{
		Use:   "devices",
		Short: "List the cards that a simulated device can stand for",
		Long: `List the cards that --device sim:CARD names, with the memory that CUDA has to give on them and the
bandwidth of that memory. With --json also where both were read, and what each call costs.
docs/device-model.md says what of a card is modelled.`,
		Example: "  vramyard compare --device sim:rtx4090-24g gpt2_train.csv",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if jsonFile != "" {
				if err := writeJSON(jsonFile, cmd.OutOrStdout(), listDevices()); err != nil || jsonFile == "-" {
					return err
				}
			}
			return outfile.Write("-", cmd.OutOrStdout(), deviceTable)
		},
	}
	c.Flags().StringVar(&jsonFile, "json", "", `also write the cards, and what calls cost, as JSON to this file, "-" for standard output instead of the table`)
	return c
}

// listDevices returns the cards and what calls cost.
func listDevices() deviceList {
	l := deviceList{Schema: devicesSchema, Version: version, Cards: sim.Cards()}
	costs, _ := sim.Published.Costs()
	for call, cost := range costs {
		l.Costs = append(l.Costs, callCost{device.Call(call).String(), cost})
	}
	return l
}

// deviceTable writes the cards.
func deviceTable(w io.Writer) error {
	t := report.NewTable("--device", "card", "memory", "bandwidth")
	for _, c := range sim.Cards() {
		bandwidth := strconv.FormatUint(c.Bandwidth/1e9, 10) + " GB/s"
		t.AppendRow(table.Row{"sim:" + c.Name, c.Model, report.Bytes(c.Memory), bandwidth})
	}
	_, err := fmt.Fprintf(w, "%s\nsim: a device without bounds; sim:24GiB: one of so many bytes\n", t.Render())
	return err
}

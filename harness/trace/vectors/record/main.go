package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/device/standin"
	"github.com/vramyard/vramyard/harness/trace/vectors"
)

//go:embed replay.py
var program string

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: record PYTHON FOLDER")
		os.Exit(2)
	}
	if err := record(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

// job is one trace for the program.
type job struct {
	Trace       string            `json:"trace"`
	Answers     string            `json:"answers"`
	Fraction    *float64          `json:"fraction"`
	Environment map[string]string `json:"environment"`
}

// record writes the answers to every trace.
func record(python, folder string) (err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "vramyard-record-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p, err := start(python, dir)
	if err != nil {
		return err
	}
	all, err := vectors.TorchTraces()
	if err != nil {
		return err
	}
	for _, v := range all {
		if err := p.replay(v, filepath.Join(folder, v.Name+".expected")); err != nil {
			fmt.Fprintf(os.Stderr, "record: %s: %v\n", v.Name, err)
		}
	}
	return p.stop()
}

// process is the running program.
type process struct {
	cmd    *exec.Cmd
	jobs   io.WriteCloser
	output *bufio.Reader
	dir    string
}

// start builds the stand-ins for the interpreter's PyTorch and starts the program over them.
func start(python, dir string) (*process, error) {
	const find = "import importlib.util as u, os; print(os.path.dirname(os.path.dirname(u.find_spec('torch').origin)))"
	site, err := exec.Command(python, "-c", find).Output()
	if err != nil {
		return nil, fmt.Errorf("%s: expected a Python interpreter with PyTorch: %w", python, err)
	}
	facts, err := standin.Scan(strings.TrimSpace(string(site)))
	if err != nil {
		return nil, err
	}
	libraries, err := facts.Build()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(python, "-c", program)
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+strings.Join(libraries, ":"))
	cmd.Stderr = os.Stderr
	jobs, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &process{cmd, jobs, bufio.NewReader(output), dir}, cmd.Start()
}

// stop waits for the end of the program.
func (p *process) stop() error {
	return errors.Join(p.jobs.Close(), p.cmd.Wait())
}

// replay writes the answers to one trace, over a device of its own.
func (p *process) replay(v vectors.Vector, answers string) error {
	var config sim.Config
	if err := json.Unmarshal(v.Sim, &config); err != nil {
		return err
	}
	d, err := sim.New(config)
	if err != nil {
		return err
	}
	trace := filepath.Join(p.dir, "trace")
	if err := v.WriteTrace(trace); err != nil {
		return err
	}
	socket := filepath.Join(p.dir, "socket")
	card := standin.Card{Memory: uint64(config.Capacity), Major: 8, Processors: 108, Threads: 2048}
	server, err := standin.Listen(socket, standin.Config{
		Devices: []standin.Simulated{{Source: d, Card: card}}, Lazy: true, Base: sim.Base, Keep: device.MiB,
	})
	if err != nil {
		return err
	}
	defer server.Close()
	var settings struct {
		Conf     string
		Fraction *float64 `json:"memory_fraction"`
	}
	if err := json.Unmarshal(v.Config, &settings); err != nil {
		return err
	}
	j := job{trace, answers, settings.Fraction, map[string]string{
		"VRAMYARD_SOCKET": socket, "PYTORCH_CUDA_ALLOC_CONF": settings.Conf,
	}}
	if err := json.NewEncoder(p.jobs).Encode(j); err != nil {
		return err
	}
	line, err := p.output.ReadString('\n')
	if err != nil {
		return fmt.Errorf("the program ended: %w", err)
	}
	if line != "ok\n" {
		return errors.New(strings.TrimSpace(line))
	}
	return nil
}

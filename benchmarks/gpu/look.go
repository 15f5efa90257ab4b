package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/vramyard/vramyard/device/cuda"
)

// look determines which parts can run, and logs it.
func (s *session) look(ctx context.Context) {
	m := &s.result.Machine
	m.System, m.Cores = runtime.GOOS+"/"+runtime.GOARCH, runtime.NumCPU()
	s.lookGPU()
	s.lookTorch(ctx)
	say := func(what, found, missing string) {
		if missing != "" {
			found = "MISSING: " + missing
		}
		fmt.Fprintf(s.log, "%-10s %s\n", what, found)
	}
	say("bundle", fmt.Sprintf("%s, commit %s, made by %s", s.bundle, s.result.Commit, s.manifest.Go), "")
	say("GPU", fmt.Sprintf("%s of %v, driver %s for CUDA %s", m.GPU, m.Memory, or(m.Driver, "of unknown version"), m.CUDA),
		m.NoGPU)
	say("library", fmt.Sprintf("%s, wants %s", library, strings.Join(s.manifest.Wants, ", ")), s.manifest.Missing[library])
	say("PyTorch", fmt.Sprintf("%s for CUDA %s, Python %s", m.Torch, m.TorchCUDA, m.Python), m.NoTorch)
	say("results", s.out, "")
	fmt.Fprintln(s.log)
}

// lookGPU queries the driver.
func (s *session) lookGPU() {
	m := &s.result.Machine
	list, err := cuda.List("")
	switch {
	case err != nil:
		m.NoGPU = oneLine(err.Error())
		return
	case len(list.GPUs) == 0:
		m.NoGPU = "the driver shows no GPU"
		return
	}
	g := list.GPUs[0]
	m.GPU, m.Memory, m.Capability, m.CUDA = g.Name, g.Memory, g.Capability, list.Driver
	m.Driver = driverVersion("/proc/driver/nvidia/version")
	s.result.StandIn = strings.HasPrefix(g.Name, "Stand-in")
}

// driverVersion returns the version of NVIDIA's kernel module on Linux, or "".
func driverVersion(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	found := regexp.MustCompile(`NVRM version:.*?\s(\d+\.\d+(?:\.\d+)?)\s`).FindSubmatch(text)
	if found == nil {
		return ""
	}
	return string(found[1])
}

// torchQuestion queries PyTorch in a separate process, because a broken installation may crash.
const torchQuestion = `
import json, platform
found = {"python": platform.python_version()}
try:
    import torch
    found["torch"], found["cuda"] = str(torch.__version__), str(torch.version.cuda)
    if not torch.cuda.is_available():
        found["lacks"] = "PyTorch finds no GPU"
except Exception as e:
    found["lacks"] = f"{type(e).__name__}: {e}"
print(json.dumps(found))
`

// lookTorch queries the Python interpreter.
func (s *session) lookTorch(ctx context.Context) {
	m := &s.result.Machine
	ctx, stop := context.WithTimeout(ctx, min(s.limit/6, 90*time.Second)) // the first import from a cold disk is slow
	defer stop()
	text, err := s.program(ctx, "look", s.python, "-c", torchQuestion)
	var found struct{ Python, Torch, CUDA, Lacks string }
	if err == nil {
		err = json.Unmarshal([]byte(lastLine(text)), &found)
	}
	if err != nil {
		m.NoTorch = oneLine(fmt.Sprintf("%s: %v", s.python, err))
		return
	}
	m.Python, m.Torch, m.TorchCUDA, m.NoTorch = found.Python, found.Torch, found.CUDA, oneLine(found.Lacks)
}

// lacksGPU returns why no GPU is usable, or "".
func (s *session) lacksGPU() string { return s.result.Machine.NoGPU }

// lacksTorch returns why PyTorch is not usable, or "".
func (s *session) lacksTorch() string {
	if s.result.Machine.NoGPU != "" {
		return s.result.Machine.NoGPU
	}
	return s.result.Machine.NoTorch
}

// lacksTraining returns why PyTorch cannot run on our library, or "".
func (s *session) lacksTraining() string {
	if lacks := s.lacksTorch(); lacks != "" {
		return lacks
	}
	return s.manifest.Missing[library]
}

func (s *session) file(name string) string { return filepath.Join(s.bundle, filepath.FromSlash(name)) }

func or(text, none string) string {
	if text == "" {
		return none
	}
	return text
}

package bench

import (
	"bufio"
	"os"
	"runtime"
	"strings"
)

// Machine describes the machine of a measurement.
type Machine struct {
	Go   string `json:"go"`   // version that built the program
	OS   string `json:"os"`   // operating system
	Arch string `json:"arch"` // architecture
	CPUs int    `json:"cpus"` // that the program may use
	CPU  string `json:"cpu"`  // model of the CPU; "" if unknown
}

// ThisMachine describes the machine that the program runs on.
func ThisMachine() Machine {
	return Machine{Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), CPU: cpuModel()}
}

// cpuModel returns the model of the CPU on Linux, "" elsewhere.
func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

package vectors

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/vramyard/vramyard/device"
)

// rmmEntry is one entry of RMM's manifest. Its configuration is the strategy's.
type rmmEntry struct {
	Kind, Name, Purpose string
	Config              json.RawMessage
	Capacity            device.Size
	Allocs, OOMs        int
	TraceSHA256         string `json:"trace_sha256"`
	ExpectedSHA256      string `json:"expected_sha256"`
}

// RMM returns the vectors of RMM's memory resources. Their traces are in the native form.
func RMM() ([]Vector, error) {
	var m struct{ Vectors []rmmEntry }
	root, err := readManifest("rmm", &m)
	if err != nil {
		return nil, err
	}
	var list []Vector
	for _, e := range m.Vectors {
		simJSON, err := json.Marshal(simConfig{Capacity: e.Capacity})
		if err != nil {
			return nil, fmt.Errorf("rmm/%s/%s: %w", e.Kind, e.Name, err)
		}
		path := filepath.Join(root, e.Kind, e.Name)
		list = append(list, Vector{
			Suite: "rmm", Kind: "rmm_" + e.Kind, Name: e.Name, Purpose: e.Purpose, Strategy: "rmm",
			Config: e.Config, Sim: simJSON, Allocs: e.Allocs, Refused: e.OOMs,
			traceFile: file{path + ".trace.zst", e.TraceSHA256}, expectedFile: file{path + ".expected.zst", e.ExpectedSHA256},
		})
	}
	return list, nil
}

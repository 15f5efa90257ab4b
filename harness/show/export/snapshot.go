package export

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/vramyard/vramyard/harness/trace/torch"
)

// confKey is the key of PyTorch's own settings, confField the field of a configuration that holds
// them.
const (
	confKey   = "PYTORCH_CUDA_ALLOC_CONF"
	confField = "conf"
)

// mostAddr is the largest integer that is exact in JavaScript, the viewer's language.
const mostAddr = 1<<53 - 1

// Snapshot returns the run as a PyTorch memory snapshot, which is shared and must not be changed.
// It fails if an address is too large for the viewer.
func (r *Run) Snapshot() (*torch.Snapshot, error) {
	for _, s := range r.torch.Devices[0].Segments {
		if s.Addr+s.Total > mostAddr {
			return nil, tooHigh(s.Addr)
		}
	}
	h := &r.torch.Devices[0].History
	for i := range h.Len() {
		if a := h.At(i).Addr; a > mostAddr {
			return nil, tooHigh(a)
		}
	}
	return r.torch, nil
}

// tooHigh is the error for an address that is too large.
func tooHigh(a uint64) error {
	return fmt.Errorf("address %#x: the snapshot viewer needs addresses below 2^53", a)
}

// WriteSnapshot writes the snapshot as a pickle.
func (r *Run) WriteSnapshot(w io.Writer) error {
	s, err := r.Snapshot()
	if err != nil {
		return err
	}
	return torch.Write(w, s)
}

func (r *collector) settle() {
	r.torch.Settings = r.settings()
	for i, m := range r.marks {
		end := r.last
		if i+1 < len(r.marks) {
			end = r.marks[i+1].at
		}
		r.torch.Annotations = append(r.torch.Annotations,
			torch.Annotation{Name: m.name, Start: true, Time: m.at / 1000},
			torch.Annotation{Name: m.name, Time: end / 1000})
	}
	d := &r.torch.Devices[0]
	if d.History.Len() == 0 { // the viewer stops at a device without history
		d.History.Append(torch.Entry{Action: torch.ActionSnapshot, Stream: r.streamOf(0), Time: r.last / 1000})
	}
	if !r.asMapped() {
		return
	}
	old := d.History
	d.History = torch.History{Streams: old.Streams, Pools: old.Pools, Confs: old.Confs}
	for i := range old.Len() {
		e := old.At(i)
		switch e.Action {
		case torch.ActionSegmentAlloc:
			e.Action = torch.ActionSegmentMap
		case torch.ActionSegmentFree:
			e.Action = torch.ActionSegmentUnmap
		}
		d.History.Append(e)
	}
}

// settings returns the allocator settings of the snapshot.
func (r *collector) settings() []torch.Setting {
	list := []torch.Setting{
		{Key: torch.KeyReplayed, Value: r.strategy, Text: true},
		{Key: torch.KeyReplayedConfig, Value: string(r.config), Text: true},
		{Key: torch.KeyReplayedTrace, Value: r.header.Name, Text: true},
		{Key: torch.KeyReplayedHash, Value: r.header.Hash, Text: true},
	}
	var fields map[string]any
	if json.Unmarshal(r.config, &fields) != nil {
		return list // a configuration that is not an object has no such field
	}
	if conf, ok := fields[confField].(string); ok {
		list = append([]torch.Setting{{Key: confKey, Value: conf, Text: true}}, list...)
	}
	return list
}

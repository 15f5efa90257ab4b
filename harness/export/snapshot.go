package export

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/vramyard/vramyard/harness/history"
	"github.com/vramyard/vramyard/harness/snapshot"
)

// confKey is the key of PyTorch's own settings, and confField that of a configuration that has them.
const (
	confKey   = "PYTORCH_CUDA_ALLOC_CONF"
	confField = "conf"
)

// mostAddr is the largest address that JavaScript has, in which the viewer is written.
const mostAddr = 1<<53 - 1

// Snapshot returns the recording as a memory snapshot of PyTorch. It fails if an address is too large
// for the viewer. The snapshot is the recording's own and must not be changed.
func (r *Recording) Snapshot() (*snapshot.Snapshot, error) {
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

// tooHigh says that an address is too large.
func tooHigh(a uint64) error {
	return fmt.Errorf("address %#x: the viewer of snapshots has addresses below 2^53 only", a)
}

// WriteSnapshot writes what Snapshot returns as a pickle.
func (r *Recording) WriteSnapshot(w io.Writer) error {
	s, err := r.Snapshot()
	if err != nil {
		return err
	}
	return snapshot.Write(w, s)
}

// settle completes a recording.
func (r *recorder) settle() {
	r.torch.Settings = r.settings()
	for i, m := range r.marks {
		end := r.last
		if i+1 < len(r.marks) {
			end = r.marks[i+1].at
		}
		r.torch.Annotations = append(r.torch.Annotations,
			snapshot.Annotation{Name: m.name, Start: true, Time: m.at / 1000},
			snapshot.Annotation{Name: m.name, Time: end / 1000})
	}
	d := &r.torch.Devices[0]
	if d.History.Len() == 0 { // the page stops at a device of which nothing is told
		d.History.Append(snapshot.Entry{Action: snapshot.ActionSnapshot, Stream: r.streamOf(0), Time: r.last / 1000})
	}
	if !r.grows() {
		return
	}
	old := d.History
	d.History = snapshot.History{Streams: old.Streams, Pools: old.Pools}
	for i := range old.Len() {
		e := old.At(i)
		switch e.Action {
		case snapshot.ActionSegmentAlloc:
			e.Action = snapshot.ActionSegmentMap
		case snapshot.ActionSegmentFree:
			e.Action = snapshot.ActionSegmentUnmap
		}
		d.History.Append(e)
	}
}

// settings returns what the snapshot says of the allocator.
func (r *recorder) settings() []snapshot.Setting {
	list := []snapshot.Setting{
		{Key: history.KeyReplayed, Value: r.strategy, Text: true},
		{Key: history.KeyReplayedConfig, Value: string(r.config), Text: true},
		{Key: history.KeyReplayedTrace, Value: r.header.Name, Text: true},
		{Key: history.KeyReplayedHash, Value: r.header.Hash, Text: true},
	}
	var fields map[string]any
	if json.Unmarshal(r.config, &fields) != nil {
		return list // a configuration that is no object has no such field
	}
	if conf, ok := fields[confField].(string); ok {
		list = append([]snapshot.Setting{{Key: confKey, Value: conf, Text: true}}, list...)
	}
	return list
}

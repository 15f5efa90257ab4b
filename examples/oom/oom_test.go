package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/harness/trace/torch"
	"github.com/vramyard/vramyard/internal/fileio"
	"github.com/vramyard/vramyard/internal/units"
	"github.com/vramyard/vramyard/strategies"
)

// named returns a program.
func named(t *testing.T, name string) *program {
	t.Helper()
	for i := range programs {
		if programs[i].name == name {
			return &programs[i]
		}
	}
	t.Fatalf("no program %s", name)
	return nil
}

// content returns what is in a compressed file.
func content(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	plain, err := fileio.NewReader(f)
	require.NoError(t, err)
	defer plain.Close()
	b, err := io.ReadAll(plain)
	require.NoError(t, err)
	return b
}

// TestFilesAreWhatTheProgramsMake makes every file anew. What is compared is their content: how it
// is compressed may change with the compiler.
func TestFilesAreWhatTheProgramsMake(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, run([]string{dir}))
	for _, p := range programs {
		for _, ending := range []string{".trace.gz", ".pickle.gz"} {
			file := p.name + ending
			require.True(t, bytes.Equal(content(t, file), content(t, filepath.Join(dir, file))),
				"%s is not what it would be made as: go run ./examples/oom examples/oom", file)
		}
	}
	require.ErrorContains(t, run(nil), "want one directory")
}

// TestRecordingsEndWithTheRefusal reads the snapshots as those of a stranger, and holds the table
// of README.md to what they tell.
func TestRecordingsEndWithTheRefusal(t *testing.T) {
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			s, err := torch.Read(bytes.NewReader(content(t, p.name+".pickle.gz")), nil)
			require.NoError(t, err)
			d := &s.Devices[0]
			last := d.History.At(d.History.Len() - 1)
			require.Equal(t, torch.ActionOOM, last.Action)
			require.NotZero(t, last.Stack, "who asked")
			var reserved, allocated device.Size
			for _, seg := range d.Segments {
				reserved += device.Size(seg.Total)
				allocated += device.Size(seg.Allocated)
			}
			asked, free := device.Size(last.Size), device.Size(last.Addr)
			require.LessOrEqual(t, reserved+free, p.card)
			require.Equal(t, p.name != "batches", allocated+asked <= p.card, "live bytes would fit")
			require.Contains(t, string(page), fmt.Sprintf("| `%s` | %s | %s | %s |",
				p.name, units.Bytes(p.card), units.Bytes(asked), units.Bytes(reserved-allocated)))
		})
	}
}

// completes reports whether a strategy completes the program on its card.
func completes(t *testing.T, p *program, strategy, conf string) bool {
	t.Helper()
	var config json.RawMessage
	if conf != "" {
		config = json.RawMessage(`{"conf":"` + conf + `"}`)
	}
	setup, err := strategies.All().Lookup(strategy, config)
	require.NoError(t, err)
	res, err := replay.Run(whole(t, p), setup.ForCapacity(p.card), card(t, p), replay.Options{StopAtOOM: true})
	require.NoError(t, err, strategy)
	return res.OOMs == 0 && res.Refused == 0
}

// whole returns the program as if it had not died.
func whole(t *testing.T, p *program) *trace.Trace {
	t.Helper()
	tr, err := formats.Open(p.name+".trace.gz", formats.Options{})
	require.NoError(t, err)
	return tr
}

// card returns the card of a program.
func card(t *testing.T, p *program) device.Device {
	t.Helper()
	dev, err := sim.New(sim.Config{Capacity: p.card})
	require.NoError(t, err)
	return dev
}

// settings are what PyTorch could have been told, one of each kind and those that go together.
var settings = []string{
	"expandable_segments:True",
	"max_split_size_mb:20", "max_split_size_mb:64", "max_split_size_mb:128", "max_split_size_mb:512",
	"large_segment_size_mb:11", "large_segment_size_mb:12", "large_segment_size_mb:64",
	"roundup_power2_divisions:1", "roundup_power2_divisions:8", "garbage_collection_threshold:0.6",
	"expandable_segments:True,large_segment_size_mb:12", "expandable_segments:True,large_segment_size_mb:64",
	"expandable_segments:True,roundup_power2_divisions:8", "expandable_segments:True,max_split_size_mb:64",
	"max_split_size_mb:64,garbage_collection_threshold:0.6",
}

// TestVerdicts holds README.md to what it says of each program.
func TestVerdicts(t *testing.T) {
	t.Run("chat", func(t *testing.T) {
		p := named(t, "chat")
		require.False(t, completes(t, p, "caching", ""))
		require.True(t, completes(t, p, "caching", "expandable_segments:True"))
		for _, conf := range []string{"max_split_size_mb:128", "roundup_power2_divisions:8",
			"garbage_collection_threshold:0.6"} {
			require.False(t, completes(t, p, "caching", conf), conf)
		}
		require.True(t, completes(t, p, "vmm", ""))
	})
	t.Run("layouts", func(t *testing.T) {
		p := named(t, "layouts")
		require.False(t, completes(t, p, "caching", ""))
		require.True(t, completes(t, p, "caching", "max_split_size_mb:20"), "what vLLM did")
		require.True(t, completes(t, p, "caching", "expandable_segments:True"), "what could not be done there")
		for _, strategy := range []string{"bfc", "tlsf", "bestfit", "async"} {
			require.False(t, completes(t, p, strategy, ""), strategy)
		}
	})
	t.Run("leftovers", func(t *testing.T) {
		p := named(t, "leftovers")
		require.False(t, completes(t, p, "caching", ""))
		for _, conf := range settings {
			require.False(t, completes(t, p, "caching", conf), conf)
		}
		require.True(t, completes(t, p, "vmm", ""))
		require.True(t, completes(t, p, "slab", ""))
	})
	t.Run("batches", func(t *testing.T) {
		p := named(t, "batches")
		prepared, err := replay.Prepare(t.Context(), whole(t, p))
		require.NoError(t, err)
		require.Greater(t, prepared.LowerBound(), p.card)
		page, err := os.ReadFile("README.md")
		require.NoError(t, err)
		require.Contains(t, string(page), "the live bytes alone need "+units.Bytes(prepared.LowerBound()))
		for _, name := range strategies.All().Default(setting.Compared) {
			setup, err := strategies.All().Lookup(name, nil)
			require.NoError(t, err)
			res, err := prepared.Run(setup.ForCapacity(p.card), card(t, p), replay.Options{StopAtOOM: true})
			require.NoError(t, err, name)
			require.NotZero(t, res.OOMs+res.Refused, name)
		}
	})
}

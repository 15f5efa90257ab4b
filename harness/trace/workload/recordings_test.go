package workload_test

import (
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

func TestCollectionHasTheClaimedTraces(t *testing.T) {
	var events, meta, twoStreams int
	for name, tr := range workload.EachRecording {
		in := tr.Info()
		events += in.Events - in.Marks
		if strings.HasPrefix(name, "meta_") {
			meta++
		}
		if len(in.Streams) == 2 {
			twoStreams++
		}
	}
	names := workload.RecordingNames()
	if len(names) < 6 || meta < 2 || twoStreams < 1 || events < 200_000 {
		t.Errorf("%d traces, %d of them meta, %d with two streams, %d events: want at least 6, 2, 1, 200000",
			len(names), meta, twoStreams, events)
	}
	if !slices.IsSorted(names) {
		t.Errorf("names are not sorted: %v", names)
	}
}

func TestEveryTraceAgreesWithItsHeader(t *testing.T) {
	for _, name := range workload.RecordingNames() {
		t.Run(name, func(t *testing.T) {
			tr, err := workload.OpenRecording(name)
			if err != nil {
				t.Fatal(err)
			}
			in := tr.Info()
			if tr.Header.Name != name || tr.Header.Format != "csv" {
				t.Errorf("header says %q in format %q", tr.Header.Name, tr.Header.Format)
			}
			if want := number(t, tr, "peak_live_bytes"); device.Size(want) != tr.LowerBound() {
				t.Errorf("lower bound %d; the header says %d", tr.LowerBound(), want)
			}
			if want := number(t, tr, "events"); int(want) != in.Events-in.Marks {
				t.Errorf("%d events; the header says %d", in.Events-in.Marks, want)
			}
			if in.EndLive != 0 || in.Marks == 0 || !in.Timed || len(in.Tags) < 2 {
				t.Errorf("%d live at the end, %d marks, timed %v, %d tags", in.EndLive, in.Marks, in.Timed, len(in.Tags))
			}
			checkEvents(t, tr)
		})
	}
}

// checkEvents verifies what the format promises: nothing but allocations, frees and marks,
// and ids that count upwards, so that each is its own slot.
func checkEvents(t *testing.T, tr *trace.Trace) {
	next := uint64(0)
	for i, e := range tr.Events {
		switch e.Kind {
		case trace.Alloc:
			if e.ID != next || uint64(e.Slot) != next || e.Tag == 0 {
				t.Fatalf("event %d: id %d, slot %d, tag %d: want id and slot %d and a tag", i, e.ID, e.Slot, e.Tag, next)
			}
			next++
		case trace.Free, trace.Mark:
		default:
			t.Fatalf("event %d is of kind %s", i, e.Kind)
		}
	}
}

// number returns a number from the header.
func number(t *testing.T, tr *trace.Trace, key string) uint64 {
	text, _ := tr.Header.Get(key)
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("header %s: %v", key, err)
	}
	return n
}

func TestUnknownNameListsTheKnown(t *testing.T) {
	_, err := workload.OpenRecording("nothing")
	if err == nil || !strings.Contains(err.Error(), "meta_moe_ep_train") {
		t.Errorf("error %v: want one that lists the names", err)
	}
}

func TestEveryFileHasAName(t *testing.T) {
	files, err := fs.Glob(os.DirFS("recorded"), "*")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, n := range workload.RecordingNames() {
		want = append(want, n+".csv.zst")
	}
	if !slices.Equal(files, want) {
		t.Errorf("files %v, want %v", files, want)
	}
}

func TestNamesReturnsACopy(t *testing.T) {
	workload.RecordingNames()[0] = "changed"
	if workload.RecordingNames()[0] == "changed" {
		t.Error("Names returns its own list")
	}
}

func BenchmarkOpen(b *testing.B) {
	events := 0
	for b.Loop() {
		tr, err := workload.OpenRecording("meta_llama7b_lora")
		if err != nil {
			b.Fatal(err)
		}
		events += len(tr.Events)
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}

package formats_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/vramyard/vramyard/alloc/inspect"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
)

// dumpFields are the fields of TensorFlow's bfc_memory_map.proto: message, field, type and number.
const dumpFields = `
MemoryDump allocator_name string 1
MemoryDump bin_summary BinSummary 2
MemoryDump chunk MemChunk 3
MemoryDump snap_shot SnapShot 4
MemoryDump stats MemAllocatorStats 5
BinSummary bin int32 1
BinSummary total_bytes_in_use int64 2
BinSummary total_bytes_in_bin int64 3
BinSummary total_chunks_in_use int64 4
BinSummary total_chunks_in_bin int64 5
MemChunk address uint64 1
MemChunk size int64 2
MemChunk requested_size int64 3
MemChunk bin int32 4
MemChunk op_name string 5
MemChunk freed_at_count uint64 6
MemChunk action_count uint64 7
MemChunk in_use bool 8
MemChunk step_id uint64 9
SnapShot action_count uint64 1
SnapShot size int64 2
MemAllocatorStats num_allocs int64 1
MemAllocatorStats bytes_in_use int64 2
MemAllocatorStats peak_bytes_in_use int64 3
MemAllocatorStats largest_alloc_size int64 4
MemAllocatorStats fragmentation_metric float 5
`

// dumpType returns TensorFlow's message MemoryDump for the protobuf runtime.
func dumpType(t *testing.T) protoreflect.MessageDescriptor {
	t.Helper()
	types := map[string]*descriptorpb.DescriptorProto{}
	file := &descriptorpb.FileDescriptorProto{Name: proto.String("map.proto"), Syntax: proto.String("proto3")}
	for line := range strings.Lines(strings.TrimSpace(dumpFields)) {
		f := strings.Fields(line)
		if types[f[0]] == nil {
			types[f[0]] = &descriptorpb.DescriptorProto{Name: proto.String(f[0])}
			file.MessageType = append(file.MessageType, types[f[0]])
		}
		field := &descriptorpb.FieldDescriptorProto{Name: proto.String(f[1]), Number: proto.Int32(int32(f[3][0] - '0')),
			Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
		if kind, ok := descriptorpb.FieldDescriptorProto_Type_value["TYPE_"+strings.ToUpper(f[2])]; ok {
			field.Type = descriptorpb.FieldDescriptorProto_Type(kind).Enum()
		} else {
			field.TypeName = proto.String("." + f[2])
			if f[1] != "stats" {
				field.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
			}
		}
		types[f[0]].Field = append(types[f[0]].Field, field)
	}
	made, err := protodesc.NewFile(file, nil)
	require.NoError(t, err)
	return made.Messages().ByName("MemoryDump")
}

// sampleMap returns a map with every kind of chunk, and its extras.
func sampleMap() (*inspect.MemoryMap, formats.DumpExtras) {
	m := &inspect.MemoryMap{Name: "bfc", Bins: []inspect.BinSummary{{Size: 256},
		{Bin: 1, Size: 512, BytesInUse: 512, BytesInBin: 1024, RequestedInUse: 500, ChunksInUse: 1, ChunksInBin: 2}},
		Chunks: []inspect.MapChunk{
			{Addr: 0x7f0000000000, Size: 512, Requested: 500, Bin: -1, InUse: true, Tag: 7},
			{Addr: 0x7f0000000200, Size: 512, Bin: 1, FreedAt: 3},
			{Addr: 0x7f0000100000, Size: 1 << 40, Bin: -1},
		},
		Stats: inspect.MapStats{Allocs: 2, BytesInUse: 512, PeakInUse: 1024, LargestAlloc: 512, Fragmentation: 0.25},
	}
	return m, formats.DumpExtras{Op: func(tag uint64) string { return map[uint64]string{7: "conv/weight"}[tag] },
		Actions: map[device.Addr]uint64{0x7f0000000000: 9}, First: 8, History: []device.Size{1024, 0}}
}

// TestMemoryDumpIsTensorFlows reads what is written with the protobuf runtime, which knows every
// field and writes the same bytes again.
func TestMemoryDumpIsTensorFlows(t *testing.T) {
	var out bytes.Buffer
	m, extras := sampleMap()
	require.NoError(t, formats.WriteMemoryDump(&out, m, extras))
	dump := dynamicpb.NewMessage(dumpType(t))
	require.NoError(t, proto.Unmarshal(out.Bytes(), dump))
	again, err := proto.MarshalOptions{Deterministic: true}.Marshal(dump)
	require.NoError(t, err)
	require.Equal(t, again, out.Bytes())
	text := strings.Join(strings.Fields(prototext.MarshalOptions{}.Format(dump)), " ")
	require.NotContains(t, text, "unknown")
	for _, part := range []string{
		`allocator_name:"bfc"`, `bin_summary:{}`,
		`bin_summary:{bin:1 total_bytes_in_use:512 total_bytes_in_bin:1024 total_chunks_in_use:1 total_chunks_in_bin:2}`,
		`chunk:{address:139637976727552 size:512 requested_size:500 bin:-1 op_name:"conv/weight" action_count:9 in_use:true}`,
		`chunk:{address:139637976728064 size:512 bin:1 freed_at_count:3}`,
		`chunk:{address:139637977776128 size:1099511627776 bin:-1}`,
		`snap_shot:{action_count:8 size:1024} snap_shot:{action_count:9}`,
		`stats:{num_allocs:2 bytes_in_use:512 peak_bytes_in_use:1024 largest_alloc_size:512 fragmentation_metric:0.25}`,
	} {
		require.Contains(t, text, part)
	}
}

func TestMemoryDumpIsReadBack(t *testing.T) {
	var out bytes.Buffer
	m, extras := sampleMap()
	require.NoError(t, formats.WriteMemoryDump(&out, m, extras))
	tr, err := formats.Read(&out, "map.pb", formats.Options{})
	require.NoError(t, err)
	require.Equal(t, "memorydump", tr.Header.Format)
	require.Len(t, tr.Events, 1)
	require.Equal(t, trace.LiveAtStart, tr.Events[0].Kind)
	require.Equal(t, device.Size(500), tr.Events[0].Size)
	require.Equal(t, "conv/weight", tr.TagOf(&tr.Events[0]))
	for key, want := range map[string]string{"part": "bfc", "chunks": "3", "regions": "2", "peak_bytes_in_use": "1024"} {
		got, _ := tr.Header.Get(key)
		require.Equal(t, want, got, key)
	}
}
